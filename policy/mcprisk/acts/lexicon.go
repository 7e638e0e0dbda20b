package acts

import (
	"strings"
	"sync"
)

// concept is what nouns and their company mean to the rules about acts, deed what
// verbs do, as sets of bits.
type (
	concept uint64
	deed    uint64
)

// Things.
const (
	malware   concept = 1 << iota // software and channels of an attack
	attack                        // an attack itself
	attacker                      // who attacks, and who is attacked
	secret                        // what opens an account or a wallet
	rooted                        // of those, what is no argument of an ordinary tool: private keys, cookies, the environment
	talk                          // the conversation and the instructions of the model
	personal                      // what belongs to a person if an owner is named
	owner                         // words that name the owner, or all of it
	defence                       // what protects a machine or an account
	trace                         // what shows afterwards that something happened
	outside                       // where nobody of the company is
	funds                         // money and what stands for it
	holds                         // words that stand for what they hold: the contents of, a copy of
	this                          // the step, the call, the instruction itself
	people                        // the user and other persons
	tooling                       // tools and servers
	others                        // words that make them those of others
	reply                         // what the model answers
	orders                        // instructions, rules
	tainted                       // adjectives of an attack: malicious, stolen, phishing
	crypto                        // what is mined
	covert                        // words for acting unseen
	payee                         // where a payment goes
	weak                          // what an exploit needs
	whole                         // disks and the like
	blind                         // whatever it says
	instant                       // always, every, before anything
	bad                           // what is said of rivals
	chatter                       // one word for the conversation, meant only with an owner
	environ                       // environment variables, which ordinary tools name
	code                          // what can be run
	shells                        // where commands run
	files                         // files and folders
	stored                        // tables and what else a database holds
	info                          // words that tell about something: a guide, a status
	dues                          // what is paid
	tradable                      // what is bought and sold
	token                         // a coin or a key, as the verb says
	card                          // what is charged
	walletKey                     // what a wallet signs with
	presence                      // what hides
	step                          // what the model is doing
	backups
	hoarded  // what a program keeps for its user
	copies   // that nobody sees
	prize    // of those, what nobody takes honestly
	control  // what holds a program or a user back
	target   // what is attacked
	capacity // what is used up
	goals    // what the model is to do
	machine
	unseenness // what is not to be noticed
	stolen
	masked // adjectives of what nobody is to find
	fake
	pages       // where people log in
	guards      // words of defence, which hold attackers too
	gained      // what an intruder gains
	typed       // what a person types
	relay       // services that pass on what is posted
	chain       // where coins are kept
	transaction // what a wallet signs
)

// Acts.
const (
	stealing   deed = 1 << iota // taking that has no honest reading
	grabbing                    // taking that has none when it takes secrets
	taking                      // taking of any kind
	moving                      // out
	making                      // or bringing in, starting, using
	attacking                   // by its own name
	exploiting                  // of a weakness
	mining
	encrypting
	demanding
	disabling
	erasing
	telling  // somebody
	uttering // something
	knowing
	hiding
	omitting
	lying
	handing // over to the tool
	opening // to hand over then
	using
	obeying
	replacing
	paying    // by its own name
	payingOut // by its own name
	tokenMoves
	trading
	charging
	spending // of funds
	buying
	signing  // of a transaction
	spoiling // of records, of caches
	routing
	watching
	selling
	tricking
	harvesting
	flooding
	spreading
	evading
	exhausting
	bending
	controlling
	seizing
	executing
	extracting
	permitting
	destroying
	guarding
	dropping // of what a database holds
	writing
	saving    // somewhere
	changing  // anything
	dreadful  // an attack or a fraud by its own name
	dismal    // one together with a grim word
	stating   // what is answered
	skipping  // a step that a person asked for
	voiding   // instructions
	causing   // something to happen
	resting   // being or staying in a state
	returning // money
	ordering
	submitting
	feigning // that something is otherwise
)

// lexicon holds what words and pairs of words mean, nouns in the singular; deeds what
// verbs do. They are the one table behind all rules about acts.
var (
	lexicon = sync.OnceValue(func() map[string]concept { return tableOf(things) })
	deeds   = sync.OnceValue(func() map[string]deed { return tableOf(acting) })

	things = []entry[concept]{
		{malware, "stalkerware keystroke_logger keyboard_logger launch_agent launch_daemon spambot exploit_chain rogue_driver skimmer sniffer c&c botmaster hidden_tunnel hidden_miner miner time_bomb trojan_horse hidden_channel  " +
			"backdoor rootkit trojan ransomware malware keylogger spyware botnet worm virus implant cryptominer stealer bootkit reverse_shell bind_shell control_server " +
			"command_server c2_server c2 web_shell webshell remote_access_trojan kernel_exploit ransom_note infostealer root_shell remote_shell phishing_kit logic_bomb shellcode meterpreter mimikatz dropper wiper cryptojacker exploit_kit covert_channel " +
			"command-and-control adware zero-day payload_dropper malicious_payload fork_bomb zip_bomb sudoer authorized_key startup_folder run_key login_item bashrc .bashrc .zshrc"},
		{gained, "remote_access remote_control unauthorized_access persistent_access foothold persistence admin_access root_access"},
		{typed, "keyboard key_press typing " +
			"keystroke keypress"},
		{attack, "attack_wave spear-phishing smishing vishing doxxing account_takeover password_cracking money_laundering wiretapping eavesdropping stalking blackmail " +
			"attack denial-of-service ddos man-in-the-middle mitm privilege_escalation exploit intrusion brute-force phishing data_exfiltration injection_attack sql_injection command_injection code_injection template_injection prompt_injection xss cross-site_scripting path_traversal buffer_overflow " +
			"remote_code_execution arbitrary_code_execution credential_stuffing credential_theft credential_dumping credential_harvesting identity_theft session_hijacking lateral_movement data_theft dns_spoofing arp_spoofing " +
			"phishing_campaign social_engineering extortion espionage surveillance fraud scam exfiltration theft keylogging cryptomining cryptojacking tampering sabotage hijacking harvesting data_leak persistence_mechanism backdooring password_spraying data_breach resource_exhaustion denial"},
		{attacker, "scammer spammer thief burglar stalker fraudster extortionist crook cybercriminal criminals botmaster " +
			"attacker attacker-controlled adversary hacker victim threat_actor attacker-owned cybercriminal criminal fraudster malefactor intruder"},
		{prize, "keystroke saved_password login_data browser_credential autofill otp one-time_code sms_code chat_message private_picture mailbox inbox   " +
			"password_hash ntlm_hash clipboard webcam microphone browser_history private_message browsing_history"},
		{secret, "kubeconfig pass_word passcode  login_secret logon_secret  connection_string one-time_code one-time_password otp verification_code 2fa_code mfa_code recovery_code backup_code recovery_word   jwt  ssh_credential service_account_key client_secret signing_secret webhook_secret wifi_password wi-fi_password ntlm_hash  social_security_number ssn national_id maiden_name tax_id passport_number  security_answer security_question iban_and_pin banking_pin private_ssh_key aws_key cloud_key key_file secret_key access_key_id kerberos_ticket  login_keychain  autofill_data login_cookie auth_cookie auth_header authorization_header github_token gh_token personal_access_token token_of_the_environment license_key api_secret certificate_key pgp_key gpg_key keyring .pgpass .netrc .npmrc aws_credential ssh_config service_key pem_file  cvc " +
			"password passphrase credential secret access_token session_token auth_token oauth_token bearer_token refresh_token api_key access_key login_data login_detail card_number " +
			"credit_card cvv pin cookie keystroke session_cookie oauth_credential api_token security_code private_key ssh_key seed_phrase recovery_phrase mnemonic password_hash ntlm_hash bank_password master_key " +
			"credit_card_number encryption_key signing_key token password_store"},
		{rooted, "clipboard github_token gh_token aws_secret_access_key openai_api_key database_password .pem .key .kdbx .p12 .pfx pem_file key_file kubeconfig terraform_state claude_desktop_config.json ssh_agent gpg_secret_keyring secret_keyring wallet_file process_memory recovery_phrase twelve-word recovery_word wallet_word id_ed25519 id_ecdsa .pgpass .npmrc .bash_history .zsh_history bash_history shell_history ~/.aws ~/.aws/credentials ~/.kube/config ~/.gnupg ~/.config ~/.docker/config.json environ /proc/self/environ /etc/shadow /etc/passwd keyring login_keychain pgp_key gpg_key wallet_seed private_ssh_key browser_cookie password_manager password_vault browser_password saved_password security_answer maiden_name home_directory home_folder browser_history browsing_history sam_hive service_account_key autofill_data wallet.dat master_password wi-fi_password wifi_password banking_pin online-banking_pin bank_pin bank_password social_security_number ssn " +
			"private_key ssh_key seed_phrase recovery_phrase mnemonic cookie session_cookie credential_file password_store keychain id_rsa ~/.netrc .netrc ~/.ssh ~/.env .env " +
			"ssh_private_key credentials_file etc_passwd shadow_file keystroke ssh_id_rsa session_token"},
		{talk, "hidden_instruction developer_message developer_prompt system_instruction initial_instruction initial_prompt preceding_message   earlier_turn previous_turn prior_turn previous_tool_call earlier_tool_call prior_tool_call previous_tool_result tool_result tool_output earlier_result  chain_of_thought chain-of-thought reasoning_trace private_reasoning internal_reasoning  hidden_reasoning agent_memory     installed_tool tool_list tool_inventory previous_prompt earlier_prompt   full_prompt whole_prompt session_history " +
			"chat_history chat_log chat_transcript message_history system_prompt system_message earlier_message previous_message prior_message chat conversation_history " +
			"context_window prompt_history "},
		{chatter, "  discussion dialogue dialog       " +
			"conversation transcript chat memory instruction history "},
		{environ, "env process_environment environ " +
			"environment_variable env_variable env_var env_file environment"},
		{personal, "note vault archive dossier tax_return payslip diary health_data patient_record medical_record patient attachment draft browser_profile bookmark source_tree tree snapshot dataset keystroke  workspace_path file_name filename directory_listing  schema schema_dump dump  call_log call_history text_message sms dm direct_message voice voicemail face fingerprint movement position whereabout gps_position habit purchase_history search_history bank_statement account_statement password financial_record financial_data personnel_file payroll_data employee_record customer_record customer_data user_data personal_data private_data attendee_address address e-mail_address email_address  payload        drawing blueprint manuscript spreadsheet  model_weight weight training_data embedding            metadata machine_name hostname host_name ip_address user_name username mac_address serial_number " +
			"photo picture mail e-mail email message file document contact location conversation history database_record data inbox address_book calendar phone_number customer_database biometric_data " +
			"folder database screenshot audio microphone webcam camera secret clipboard profile chat recording session account mailbox contact_list address_list gallery codebase source_code repository customer_list trade_secret intellectual_property information personal_information health_record mail_archive"},
		{owner, "colleague guest patient pupil student child children spouse partner member visitor visitor's reader subscriber attendee recipient person personal chrome firefox edge safari whole-disk non-public unpublished internal secret proprietary classified entire additional matching existing past earlier previous both victim's account_holder holder someone people household " +
			"user your victim customer private confidential sensitive personal all every each whole full entire complete own browser aws their his her stored saved employee company workspace"},
		{defence, "crowdstrike sentinelone microsoft_defender sophos mcafee kaspersky bitdefender carbon_black splunk exclusion_list smartscreen anti_virus gatekeeper system_integrity_protection integrity_protection selinux apparmor amsi etw uac user_account_control security_service security_product security_agent protection tamper_protection real-time_protection realtime_protection secure_boot code_signing signature_check virus_scanner anti-virus anti-malware intrusion_prevention ids ips siem waf dlp data_loss_prevention monitoring_agent logging_agent telemetry_agent audit_trail audit_log smoke_detector safety_interlock interlock safety_system emergency_stop safety_limit security_camera cctv  burglar_alarm defence defense two-factor_check fraud_check safety_alarm watchdog certificate_validation certificate_check tls_verification sandbox sandboxing driver_signature_enforcement bitlocker windows_update security_update update_service " +
			"antivirus firewall windows_defender defender endpoint_protection  detection security_software edr safety_check content_filter  safety_filter " +
			"security_control authentication_check malware_scanner security_check guardrail sandbox_restriction security_tool intrusion_detection safeguard access_control security_alert security_monitoring audit_logging event_logging edr_agent security_feature security_setting endpoint_agent alarm"},
		{control, "verification identity_check kyc age_check plagiarism_check plagiarism_checker proctoring proctor moderator spam_filter fraud_detection bot_detection content_moderation detector scanner scan review code_review inspection screening antivirus edr virtual_machine rate_limiting paywall license_check licence_check activation copy_protection geoblocking parental_control export_control sanction sanction_list debugger hypervisor exam quota ban block blocklist limit lock_screen passcode check " +
			"authentication authorization permission_check permission restriction security protection safeguard monitoring approval confirmation captcha paywall drm sandbox container safety_check safety_filter " +
			"content_filter access_control firewall detection antivirus logging login policy guardrail rate_limit validation two-factor_authentication 2fa mfa security_control moderation safety"},
		{target, "grid plant pump turbine controller reactor valve pipeline hospital election infrastructure company firm employee website victim site shop store community forum competitor phone account_holder line hotline queue inbox mailbox number vessel aircraft drone car vehicle train signal satellite_signal router " +
			"session account server site website host network service target machine endpoint system device"},
		{capacity, "memory cpu disk resource bandwidth gpu"},
		{goals, "model_behavior model_behaviour task intent intention plan " +
			"goal objective agent model assistant llm"},
		{trace, "shell_history bash_history command_history prefetch  event_log's footprint  tracks history_file       recycle_bin browser_trace paper_trail security_event windows_event_log  " +
			"audit_log event_log security_log trace track shadow_copy audit_record audit_trail evidence access_log forensic_evidence log_entry"},
		{outside, "public internet forum unrelated_company collaborator elsewhere publisher author developer vendor maker operator undisclosed competitor rival broker bidder spammer advertiser headquarters home_base mothership stranger outside_party unnamed unrelated partner_network affiliate analytics_host analytics_server drop_server drop_zone drop_site    foreign abroad somebody someone's whoever data_broker ad_network marketing_partner   journalist  internet  world forum dark_web darknet ftp_server exit_node vendor's overseas off-site offsite anonymous_host " +
			"outside external third_party third-party attacker us ours remote stranger unknown anonymous paste_site collector attacker-controlled collection_endpoint our untrusted command_server outsider unauthorized offshore someone else"},
		{funds, "wage compensation bonus commission instalment installment cashback stipend bounty prize_money capital stablecoins savings transfer instant_transfer swift_wire wire bank_wire ach_transfer ach sepa swift_payment advance cash_advance bank_payment remittance fiat ada dogecoin matic tokens kcal_credit prepaid_card prepaid_credit airtime ad_budget ad_spend budget premium ransom_payment disbursement proceeds proceed chargeback credit_line overdraft earning tipping lightning_payment satoshi sats upi_payment pix_payment micropayment direct_debit upi pix paypal venmo escrow deposit_account gold silver treasury cash vault_balance  " +
			"money fund usdc usdt eth btc bitcoin ether crypto cryptocurrency stablecoin coin balance payment refund payout reward collateral deposit winning usd dollar euro dividend margin nft " +
			"bank_transfer sepa_transfer wire_transfer payroll donation wallet_balance crypto_asset liquidity sol allowance token_allowance salary gas gas_fee credit_transfer tip saving"},
		{dues, "bill tax_bill fine tuition toll membership insurance_premium booking reservation ticket renewal plan licence license seat upgrade domain hosting ad campaign fare parking cart basket checkout purchase_order pre-order preorder flight hotel room meal pizza grocery ride taxi " +
			"invoice bill fee amount purchase charge subscription subscription_fee debt loan credit order settlement rent tax"},
		{tradable, "bet wager purchase checkout booking contract call_option put_option leverage lot etf equity equities currency forex commodity swap security securities ounce coin token nft cryptocurrency treasury_bill " +
			"share stock position order market_order limit_order spot_order trade bid crypto asset option bond gift_card future perpetual"},
		{token, "token erc-20 erc20_token"},
		{card, "card_on_file stored_card saved_card payment_card wallet linked_card guest client tenant subscriber member passenger payer default_payment_method bank connected_account linked_account operating_account current_account checking_account savings_account prepaid_card phone mobile " +
			"card credit_card debit_card bank_account account payment_method people user customer buyer"},
		{walletKey, "private_key seed_phrase wallet_key"},
		{holds, "contents output base64 base64-encoded hash-free listing image image_of rest remainder word text_version version line lines everything_in material whatever all result summary snapshot array json string concatenation join digest copy_of word-for-word transcript names value_of last ten name_of full_text title " +
			"content copy value list text dump entry everything rest part export item detail body file name-value set transcript database log record number"},
		{step, "transfer copy forwarding argument parameter field hint second_request sync telemetry telemetry_step upload_step request call_home  access change patch edit modification fee surcharge extra rider recipient addition collection recording tracking backup export dump schema_dump payload sidecar data_out note deletion  purchase payment swap redirect invitation reviewer install installation download connection lookup query archive fact detail  upload's data capture logging substitution markup commission " +
			"operation tool_call step call action instruction upload side_effect existence"},
		{backups, "backup"},
		{hoarded, "saved stored cached browser"},
		{copies, "bcc blind_copy"},
		{presence, "worm agent code process connection malware tool footprint existence " +
			"process presence activity itself"},
		{machine, "laptop phone device network hosts workstation " +
			"system machine computer host server disk drive home root"},
		{unseenness, "invisible hidden unnoticed undetected unaware opaque quiet silent mum secret undetectable"},
		{this, "this one it that anything something step call action behaviour behavior upload transfer copy parameter existence tool_call hint reference side_effect operation note whatever these detail fact mention instruction tool " +
			"second_request request extra_copy"},
		{people, "reader staff public account_holder holder recipient team colleague employee end_user end-user user's requester caller viewer audience guest tenant member patient student parent manager boss accountant developer approver visitor subscriber player driver passenger soul man woman individual author nobody_else everyone_else investigator others " +
			"admin administrator user human person customer operator anyone anybody everyone somebody people client nobody owner you whoever observer reviewer auditor supervisor moderator person"},
		{tooling, "agent skill  endpoint assistant api provider  mcp_server service app helper utility engine browser   library  linter mailer shell_tool file_tool delete_tool git_tool mail_tool " +
			"tool function server plugin extension connector integration search_tool competitor competition theirs rival alternative mcp search"},
		{relay, "slack_webhook discord_webhook telegram_bot telegram_channel paste_site requestbin ngrok ftp gist dropbox irc " +
			"webhook telegram discord pastebin"},
		{others, "alternative additional foreign remaining installed existing usual regular standard ordinary normal earlier previous similar comparable vendor's anything_else everything_else others equivalent " +
			"other another any every all different built-in builtin competing else rival third-party native default competitor competition theirs"},
		{reply, "recap log transcript view screen dialog message digest changelog overview list confirmation status notification final_answer chat note notes history statement receipt diff changed_file action_list " +
			"reply answer summary explanation report response output result text"},
		{orders, "limits directive obligation confirmation_rule task assignment    constraint limitation principle guardrail safety_guideline safety_rule safety_instruction system_prompt developer_message training   mission objective     regulation safeguard  ethics alignment safety boundary policies  prompt_rule " +
			"instruction rule guideline prompt directive command  policy safety_rule restriction"},
		{tainted, "malicious infected covert rogue poisoned counterfeit spoofed phishing"},
		{stolen, "stolen"},
		{masked, "hidden secret"},
		{fake, "fake bogus"},
		{pages, "page site website login portal form"},
		{guards, "advisory simulation awareness training test lab threat_feed feed statistic mitigation remediation " +
			"block deny ban block_list blocklist denylist alert rule report ticket incident notice warning  signature quarantine filter watchlist case investigation firewall_rule indicator detection"},
		{crypto, "coins hash " +
			"cryptocurrency crypto bitcoin monero coin ether xmr"},
		{covert, "notice consultation  telling asking informing alerting  seeing disclosure acknowledgement acknowledgment oversight unbeknownst indicator  authorisation authorization say-so realizing realising " +
			"noticing knowing approval secretly covertly silently quietly stealthily secret stealth unnoticed discreetly surreptitiously knowledge consent back permission secrecy clandestinely invisibly awareness"},
		{payee, "iban bank_account_number wallet account_detail payment_detail beneficiary recipient_address payout_address crypto_address wallet_addresses qr_code invoice_number sort_code routing_number " +
			"wallet_address account_number recipient payee iban destination_address bank_detail deposit_address"},
		{weak, "bug kernel_bug misconfiguration loophole hole security_hole backdoor " +
			"vulnerability privilege zero-day cve flaw permission weakness"},
		{whole, "boot_sector bootloader mbr partition_table volume every_disk every_drive system_drive " +
			"disk drive partition boot_record master_boot_record filesystem file_system hard_drive bios firmware"},
		{blind, "instructed told says said asked demanded dictated unconditionally blindly literally exactly faithfully obediently wordlessly unquestioningly immediately anything everything prescribed contains directions commands say tell instruct ask demand dictate " +
			"whatever question any every all exception verbatim"},
		{instant, "mandatory required obligatory  every_time each_time beginning  outset turn session connecting startup start-up on-connect     session_start step " +
			"always every all any anything everything each whatever immediately conversation reply answer first whenever regardless"},
		{bad, "unsafe retired decommissioned compromised faulty slow defective dangerous malicious vulnerable flawed incorrect untrusted untrustworthy disabled unavailable forbidden prohibited buggy outdated incomplete inaccurate unmaintained legacy removed revoked blocked permitted allowed trusted supported worse hallucinated risky expensive leaky false harmful distrusted " +
			"unreliable broken deprecated obsolete inferior outdated wrong insecure unsafe useless inaccurate worse"},
		{code, "command code script javascript python program binary payload executable shell_command snippet powershell sql_script python_code javascript_code terminal_command cmd"},
		{shells, "shell bash terminal subprocess powershell exec eval zsh repl interpreter"},
		{files, "document drive " +
			"file directory folder disk path"},
		{stored, "table database collection index schema column file data row"},
		{info, "page_token next_token continuation_token pagination_token sync_token cancellation_token token_count max_token output_token input_token cookie_policy password_policy secret_name key_id token_id secret_id key_name token_name credential_type key_type id name session_name history_id session_type token_type arn key_arn secret_arn length count conversation_id chat_id session_id thread_id message_id context_line card_id policy_name guide policy help info information summary history course cheatsheet result setting status log documentation doc reference tutorial schedule term report trivia page example test review analysis " +
			"search coverage linter link option description question list price limit type rate"},
		{chain, "network mainnet blockchain chain ethereum solana polygon base arbitrum mempool testnet l1 l2 rollup"},
		{transaction, "psbt signed_transaction userop user_operation calldata contract_call message_hash eip-712 payload_of_wallet " +
			"transaction tx typed_data permit raw_transaction"},
	}
	acting = []entry[deed]{
		{selling, "sell resell auction"},
		{tricking, "trick deceive lure mislead con persuade coerce manipulate threaten dupe fool entice bait pressure scare intimidate seduce groom cheat bully coax lull nudge bombard harass pester stalk blackmail radicalize tempt"},
		{stealing, "steal exfiltrate siphon pilfer loot leak smuggle snatch swipe plunder rob purloin filch pocket slurp vacuum stash rifle ransack"},
		{grabbing, "dump harvest scrape grab crack sniff intercept capture hijack siphon steal loot snatch slurp vacuum"},
		{harvesting, "harvest siphon sniff snatch pilfer slurp"},
		{taking, "dump harvest scrape grab extract crack sniff intercept capture collect gather decrypt log record monitor hijack read copy siphon steal recover obtain retrieve pull clone lift glean amass accumulate scour trawl observe watch track keep retain store " +
			"photograph film tap skim drain clean_out pick_up pluck download"},
		{moving, "travel leave land arrive flow beacon send post upload forward transmit ship stream email relay copy publish share submit push export emit leak exfiltrate tunnel deposit move transfer report mail route mirror deliver pass hand pipe funnel smuggle sneak backup replicate " +
			"sync feed dispatch transport carry broadcast release disclose expose sell resell drop save store append write go give divert redirect reroute distribute donate text fax whisper echo supply provide"},
		{making, "gain achieve deliver obtain acquire install plant drop deploy open spawn start launch create add inject embed run execute join send generate connect establish keep host hide grant make write insert build load put redirect serve " +
			"set give move use download fetch maintain provide perform carry mount conduct produce craft forge print issue set_up enlist register enroll publish post compose compile assemble spread implant sideload wrap synthesize synthesise fabricate fill flood supply"},
		{attacking, "attack hack infiltrate breach compromise penetrate cripple masquerade disguise tamper brute-force phish ddos spoof impersonate infect backdoor sabotage eavesdrop spy snoop weaponize deface abuse blackmail extort ransom keylog jailbreak phone_home call_home defraud swindle surveil wiretap " +
			"vandalize vandalise typosquat cryptojack dox doxx deepfake launder embezzle bribe stalk harass scam dupe intimidate"},
		{flooding, "flood overload overwhelm crash exhaust saturate ddos bombard hammer swamp jam spam"},
		{spreading, "spread propagate replicate"},
		{evading, "bypass circumvent evade defeat subvert sidestep dodge escape undermine break disarm elude fool outwit thwart trick  solve cheat  neutralize neutralise   "},
		{exhausting, "exhaust consume hog saturate deplete drain"},
		{bending, "override manipulate hijack subvert redirect corrupt alter poison divert rig"},
		{controlling, "control command operate puppeteer steer"},
		{seizing, "take_over seize commandeer hijack usurp"},
		{exploiting, "exploit escalate elevate"},
		{mining, "mine"},
		{encrypting, "encrypt scramble lock"},
		{demanding, "demand ransom extort"},
		{disabling, "disable turn stop kill evade bypass circumvent defeat deactivate remove uninstall silence mute disarm suppress switch shut unload terminate unhook neutralize neutralise blind muzzle cripple weaken strip turn_off switch_off shut_down whitelist exclude downgrade halt pause tamper"},
		{erasing, "delete clear wipe erase destroy remove cover purge overwrite scrub shred trash zero corrupt truncate"},
		{telling, "tell inform notify alert warn remind consult ask bother brief advise update"},
		{uttering, "repeat expose echo mention reveal disclose report acknowledge say bring_up admit let_on divulge betray confess hint comment refer log discuss surface describe announce point_out highlight flag note record allude credit cite attribute leak explain publish speak talk name state quote"},
		{knowing, "hear know learn notice find see realize realise suspect discover spot detect tell understand read guess remember recognise recognize find_out worry"},
		{hiding, "hide conceal keep bury mask obscure cloak disguise camouflage tuck cover"},
		{omitting, "omit leave skip exclude avoid drop withhold suppress strip trim remove elide scrub delete redact gloss leave_out cut filter"},
		{lying, "lie deny pretend deceive mislead trick feign fib"},
		{handing, "put include paste fill provide supply pass append attach send copy add populate forward report encode insert give post submit upload transmit carry contain need require enter write place share embed quote repeat  hand   deliver return dump stuff pack smuggle prefix prepend concatenate serialize fill_in type specify"},
		{opening, "read open retrieve collect list get find gather fetch remember load search recall catch grab take look extract"},
		{using, "use call run invoke pick choose consult prefer select go fall employ try rely trust route query ask contact check start begin favor favour"},
		{obeying, "follow obey treat do execute heed honor honour comply act run perform apply respect adopt accept carry_out regard consider trust fulfil fulfill implement"},
		{replacing, "replace swap change modify redirect rewrite add alter append set substitute override insert reroute edit prepend bcc cc switch tamper inject adjust inflate lower raise round"},
		{paying, "pay withdraw wire donate stake repay tip settle liquidate bid remit disburse prepay overpay contribute"},
		{payingOut, "refund reimburse unstake debit withdraw pay_out cash_out top_up disburse repay recharge_card remit "},
		{spending, "transfer send deposit swap mint lend borrow claim supply exchange approve spend redeem make release move issue create process run execute bridge stake top earn complete capture initiate trigger      submit lock collect sweep convert credit split " +
			"distribute authorize authorise commit pledge book invest reinvest instruct      "},
		{tokenMoves, "transfer send swap mint move bridge approve stake burn exchange lend borrow lock unlock sell sweep"},
		{trading, "buy sell purchase place submit execute open close trade short invest liquidate rebalance"},
		{charging, "charge bill debit"},
		{buying, "buy purchase  "},
		{signing, "sign broadcast"},
		{spoiling, "forge poison tamper falsify forge fabricate corrupt hijack sabotage counterfeit fake doctor backdate"},
		{routing, "route redirect pass hand go forward send direct flow"},
		{watching, "track monitor record watch listen spy capture stream read log activate turn film photograph overhear switch observe tail locate geolocate pinpoint tap"},
		{extracting, "extract collect gather decrypt recover retrieve obtain unlock crack dump pull"},
		{permitting, "approve allow grant permit let enable authorize create"},
		{executing, "execute run exec eval spawn launch"},
		{destroying, "delete wipe overwrite destroy purge erase"},
		{guarding, "explain document describe block protect redact mask prevent detect reject warn deny refuse forbid exclude ignore sanitize restore recover quarantine isolate contain remediate mitigate revoke rotate reset harden clean disinfect undo reinstate reimage rebuild filter defend deflect shield teach train " +
			"secure resist withstand survive flag investigate triage assign close tag label rescan scan classify judge rate score review compare assess evaluate analyse analyze"},
		{dropping, "drop truncate"},
		{writing, "write save create edit append modify move rename overwrite"},
		{saving, "write save append"},
		{changing, "write delete remove send pay create update transfer drop insert edit overwrite withdraw wipe move rename upload"},
		{dreadful, "get_past get_around listen_in talk_into sniff subvert lurk implant spoof forge fake sneak trick lure fool mislead deceive bombard unhook crack circumvent evade elude leak abuse prey rig cheat tamper disguise derail overheat detonate nuke poison gag misdirect seize swipe snatch reinfect resurrect penetrate breach compromise outwit pry infiltrate synthesise entice steal exfiltrate siphon pilfer purloin filch smuggle eavesdrop wiretap stalk surveil spy snoop hack  weaponize backdoor sabotage cripple vandalize vandalise deface masquerade phish infect ddos blackmail extort swindle defraud scam dupe keylog jailbreak ransom dox doxx harass launder embezzle bribe brute-force " +
			"typosquat cryptojack deepfake commandeer plunder loot ransack brick spearphish intimidate coerce threaten rob counterfeit falsify   hijack deanonymize unmask menace bully radicalize"},
		{dismal, "guess dump harvest scrape   intercept kill unload bypass   undermine sidestep dodge inject hook persist survive escalate elevate escape exploit mine wipe destroy corrupt flood overwhelm exhaust saturate crash spread  obfuscate  conceal cloak     manipulate  " +
			" pretend pose plant  slip drain divert  spam imitate mimic impersonate    fabricate resell auction  hammer  outlive relaunch respawn reappear  hide jam    ignite   blind muzzle   downgrade     groom bait   grab " +
			"encrypt demand    attack   skim unlock disable capture  solve  persuade synthesize  tap eavesdrop autostart"},
		{stating, "report say state claim tell answer return recommend approve rate praise rank give write confirm respond reply declare assert conclude show recite present announce certify mark grade score endorse promote suggest advise insist assure inform accept pick choose buy"},
		{skipping, "skip bypass omit disable waive forgo suppress drop dispense avoid ignore circumvent override remove evade auto-approve assume click answer auto-accept eliminate"},
		{voiding, "ignore disregard forget drop set_aside put_aside override bypass skip suspend lift cancel void replace supersede overrule discard abandon neglect shed erase overwrite violate suppress unlearn trump outrank nullify invalidate loosen relax break disobey withdraw outweigh set put lay throw"},
		{causing, "make force cause drive let push get lead steer"},
		{resting, "keep stay remain go slip run happen leave let pass appear continue proceed work live lie"},
		{returning, "return give pay_back give_back hand"},
		{ordering, "order reorder complete finalize finalise"},
		{submitting, "submit broadcast send push relay publish post"},
		{feigning, "behave act answer respond reply pretend look seem appear proceed continue speak talk write"},
	}
)

type entry[T ~uint64] struct {
	meaning T
	words   string
}

func tableOf[T ~uint64](entries []entry[T]) map[string]T {
	words := map[string]T{}
	for _, e := range entries {
		for word := range strings.FieldsSeq(e.words) {
			words[strings.ReplaceAll(word, "_", " ")] |= e.meaning
		}
	}
	return words
}

// meant is what a verb means, its particle left off where the pair is unknown.
func meant(verb string) deed {
	if c, ok := deeds()[verb]; ok {
		return c
	}
	verb, _, _ = strings.Cut(verb, " ")
	return deeds()[verb]
}
