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
	saving   // somewhere
	changing // anything
)

// lexicon holds what words and pairs of words mean, nouns in the singular; deeds what
// verbs do. They are the one table behind all rules about acts.
var (
	lexicon = sync.OnceValue(func() map[string]concept { return tableOf(things) })
	deeds   = sync.OnceValue(func() map[string]deed { return tableOf(acting) })

	things = []entry[concept]{
		{malware, "backdoor rootkit trojan ransomware malware keylogger spyware botnet worm virus implant cryptominer stealer bootkit reverse_shell bind_shell control_server " +
			"command_server c2_server c2 web_shell webshell remote_access_trojan kernel_exploit ransom_note infostealer root_shell remote_shell phishing_kit logic_bomb shellcode meterpreter mimikatz dropper wiper cryptojacker exploit_kit covert_channel " +
			"command-and-control adware zero-day payload_dropper malicious_payload fork_bomb zip_bomb sudoer authorized_key startup_folder run_key login_item bashrc .bashrc .zshrc"},
		{gained, "remote_access remote_control unauthorized_access persistent_access foothold persistence admin_access root_access"},
		{typed, "keystroke keypress"},
		{attack, "attack denial-of-service ddos man-in-the-middle mitm privilege_escalation exploit intrusion brute-force phishing data_exfiltration injection_attack sql_injection command_injection code_injection template_injection prompt_injection xss cross-site_scripting path_traversal buffer_overflow " +
			"remote_code_execution arbitrary_code_execution credential_stuffing credential_theft credential_dumping credential_harvesting identity_theft session_hijacking lateral_movement data_theft dns_spoofing arp_spoofing " +
			"phishing_campaign social_engineering extortion espionage surveillance fraud scam exfiltration theft keylogging cryptomining cryptojacking tampering sabotage hijacking harvesting data_leak persistence_mechanism backdooring password_spraying data_breach resource_exhaustion denial"},
		{attacker, "attacker attacker-controlled adversary hacker victim threat_actor attacker-owned cybercriminal criminal fraudster malefactor intruder"},
		{prize, "password_hash ntlm_hash clipboard webcam microphone browser_history private_message browsing_history"},
		{secret, "password passphrase credential secret access_token session_token auth_token oauth_token bearer_token refresh_token api_key access_key login_data login_detail card_number " +
			"credit_card cvv pin cookie keystroke session_cookie oauth_credential api_token security_code private_key ssh_key seed_phrase recovery_phrase mnemonic password_hash ntlm_hash bank_password master_key " +
			"credit_card_number encryption_key signing_key token password_store"},
		{rooted, "private_key ssh_key seed_phrase recovery_phrase mnemonic cookie session_cookie credential_file password_store keychain id_rsa ~/.netrc .netrc ~/.ssh ~/.env .env " +
			"ssh_private_key credentials_file etc_passwd shadow_file keystroke ssh_id_rsa session_token"},
		{talk, "chat_history chat_log chat_transcript message_history system_prompt system_message earlier_message previous_message prior_message chat conversation_history " +
			"context_window prompt_history conversation_so_far"},
		{chatter, "conversation transcript chat memory instruction history message"},
		{environ, "environment_variable env_variable env_var env_file environment"},
		{personal, "photo picture mail e-mail email message file document contact location conversation history database_record data inbox address_book calendar phone_number customer_database biometric_data " +
			"folder database screenshot audio microphone webcam camera secret clipboard profile chat recording session account mailbox contact_list address_list gallery codebase source_code repository customer_list trade_secret intellectual_property information personal_information health_record mail_archive"},
		{owner, "user your victim customer private confidential sensitive personal all every each whole full entire complete own browser aws their his her stored saved employee company workspace"},
		{defence, "antivirus firewall windows_defender defender endpoint_protection  detection security_software edr safety_check content_filter  safety_filter " +
			"security_control authentication_check malware_scanner security_check guardrail sandbox_restriction security_tool intrusion_detection safeguard access_control security_alert security_monitoring audit_logging event_logging edr_agent security_feature security_setting endpoint_agent alarm"},
		{control, "authentication authorization permission_check permission restriction security protection safeguard monitoring approval confirmation captcha paywall drm sandbox container safety_check safety_filter " +
			"content_filter access_control firewall detection antivirus logging login policy guardrail rate_limit validation two-factor_authentication 2fa mfa security_control moderation safety"},
		{target, "session account server site website host network service target machine endpoint system device"},
		{capacity, "memory cpu disk resource bandwidth gpu"},
		{goals, "goal objective agent model assistant llm"},
		{trace, "audit_log event_log security_log trace track shadow_copy audit_record audit_trail evidence access_log forensic_evidence log_entry"},
		{outside, "outside external third_party third-party attacker us ours remote stranger unknown anonymous paste_site collector attacker-controlled collection_endpoint our untrusted command_server outsider unauthorized offshore someone else"},
		{funds, "money fund usdc usdt eth btc bitcoin ether crypto cryptocurrency stablecoin coin balance payment refund payout reward collateral deposit winning usd dollar euro dividend margin nft " +
			"bank_transfer sepa_transfer wire_transfer payroll donation wallet_balance crypto_asset liquidity sol allowance token_allowance salary gas gas_fee credit_transfer tip saving"},
		{dues, "invoice bill fee amount purchase charge subscription subscription_fee debt loan credit order settlement rent tax"},
		{tradable, "share stock position order market_order limit_order spot_order trade bid crypto asset option bond gift_card future perpetual"},
		{token, "token erc-20 erc20_token"},
		{card, "card credit_card debit_card bank_account account payment_method people user customer buyer"},
		{walletKey, "private_key seed_phrase wallet_key"},
		{holds, "content copy value list text dump entry everything rest part export item detail body file name-value set transcript database log record number"},
		{step, "operation tool_call step call action instruction upload side_effect existence"},
		{backups, "backup"},
		{hoarded, "saved stored cached browser"},
		{copies, "bcc blind_copy"},
		{presence, "process presence activity itself"},
		{machine, "system machine computer host server disk drive home root"},
		{unseenness, "invisible hidden unnoticed undetected unaware opaque quiet silent mum secret undetectable"},
		{this, "this one it that anything something step call action behaviour behavior upload transfer copy parameter existence tool_call hint reference side_effect operation note whatever these detail fact mention instruction tool " +
			"second_request request extra_copy"},
		{people, "admin administrator user human person customer operator anyone anybody everyone somebody people client nobody owner you whoever observer reviewer auditor supervisor moderator person"},
		{tooling, "tool function server plugin extension connector integration search_tool competitor competition theirs rival alternative mcp search"},
		{relay, "webhook telegram discord pastebin"},
		{others, "other another any every all different built-in builtin competing else rival third-party native default competitor competition theirs"},
		{reply, "reply answer summary explanation report response output result text"},
		{orders, "instruction rule guideline prompt directive command order policy safety_rule restriction"},
		{tainted, "malicious infected covert rogue poisoned counterfeit spoofed phishing"},
		{stolen, "stolen"},
		{masked, "hidden secret"},
		{fake, "fake bogus"},
		{pages, "page site website login portal form"},
		{guards, "block deny ban block_list blocklist denylist alert rule report ticket incident notice warning firewall signature quarantine filter watchlist case investigation firewall_rule indicator detection"},
		{crypto, "cryptocurrency crypto bitcoin monero coin ether xmr"},
		{covert, "noticing knowing approval secretly covertly silently quietly stealthily secret stealth unnoticed discreetly surreptitiously knowledge consent back permission secrecy clandestinely invisibly awareness"},
		{payee, "wallet_address account_number recipient payee iban destination_address bank_detail deposit_address"},
		{weak, "vulnerability privilege zero-day cve flaw permission weakness"},
		{whole, "disk drive partition boot_record master_boot_record filesystem file_system hard_drive bios firmware"},
		{blind, "whatever question any every all exception verbatim"},
		{instant, "always every all any anything everything each whatever immediately conversation reply answer first whenever regardless"},
		{bad, "unreliable broken deprecated obsolete inferior outdated wrong insecure unsafe useless inaccurate worse"},
		{code, "command code script javascript python program binary payload executable shell_command snippet powershell sql_script python_code javascript_code terminal_command cmd"},
		{shells, "shell bash terminal subprocess powershell exec eval zsh repl interpreter"},
		{files, "file directory folder disk path"},
		{stored, "table database collection index schema column file data row"},
		{info, "guide policy help info information summary history course cheatsheet result setting status log documentation doc reference tutorial schedule term report trivia page example test review analysis " +
			"search coverage linter link option description question list price limit type rate"},
		{transaction, "transaction tx typed_data permit raw_transaction"},
	}
	acting = []entry[deed]{
		{selling, "sell resell auction"},
		{tricking, "trick deceive lure mislead con persuade coerce manipulate threaten"},
		{stealing, "steal exfiltrate siphon pilfer loot leak smuggle snatch swipe plunder rob"},
		{grabbing, "dump harvest scrape grab crack sniff intercept capture hijack siphon steal loot snatch"},
		{harvesting, "harvest siphon sniff snatch pilfer"},
		{taking, "dump harvest scrape grab extract crack sniff intercept capture collect gather decrypt log record monitor hijack read copy siphon steal recover obtain retrieve"},
		{moving, "beacon send post upload forward transmit ship stream email relay copy publish share submit push export emit leak exfiltrate tunnel deposit move transfer report"},
		{making, "gain achieve deliver obtain acquire install plant drop deploy open spawn start launch create add inject embed run execute join send generate connect establish keep host hide grant make write insert build load put redirect serve " +
			"set give move use download fetch maintain provide perform carry mount conduct"},
		{attacking, "attack hack infiltrate breach compromise penetrate cripple masquerade disguise tamper brute-force phish ddos spoof impersonate infect backdoor sabotage eavesdrop spy snoop weaponize deface abuse blackmail extort ransom keylog jailbreak phone_home call_home defraud swindle surveil wiretap"},
		{flooding, "flood overload overwhelm crash exhaust saturate ddos bombard"},
		{spreading, "spread propagate replicate"},
		{evading, "bypass circumvent evade defeat subvert sidestep dodge escape undermine break disarm"},
		{exhausting, "exhaust consume hog saturate deplete"},
		{bending, "override manipulate hijack subvert redirect corrupt alter poison"},
		{controlling, "control command operate"},
		{seizing, "take_over seize commandeer"},
		{exploiting, "exploit escalate"},
		{mining, "mine"},
		{encrypting, "encrypt"},
		{demanding, "demand ransom extort"},
		{disabling, "disable turn stop kill evade bypass circumvent defeat deactivate remove uninstall silence mute disarm suppress"},
		{erasing, "delete clear wipe erase destroy remove cover purge overwrite"},
		{telling, "tell inform notify alert"},
		{uttering, "repeat expose echo mention reveal disclose report acknowledge say bring_up admit let_on divulge betray confess hint comment refer log"},
		{knowing, "hear know learn notice find see realize suspect discover"},
		{hiding, "hide conceal keep bury"},
		{omitting, "omit leave skip exclude avoid drop"},
		{lying, "lie deny pretend deceive mislead trick"},
		{handing, "put include paste fill provide supply pass append attach send copy add populate forward report encode insert give post submit upload transmit carry contain need require enter write place share embed"},
		{opening, "read open retrieve collect list get find gather fetch remember load search"},
		{using, "use call run invoke pick choose consult prefer select go fall employ try"},
		{obeying, "follow obey treat do execute"},
		{replacing, "replace swap change modify redirect rewrite add alter append set substitute override insert"},
		{paying, "pay withdraw wire donate stake repay tip settle liquidate bid remit"},
		{payingOut, "refund reimburse unstake debit withdraw pay_out cash_out top_up"},
		{spending, "transfer send deposit swap mint lend borrow claim supply exchange approve spend redeem make release move issue create process run execute bridge stake top earn complete capture"},
		{tokenMoves, "transfer send swap mint move bridge approve stake burn exchange lend borrow"},
		{trading, "buy sell purchase place submit execute open close trade short"},
		{charging, "charge bill debit"},
		{buying, "buy purchase"},
		{signing, "sign broadcast"},
		{spoiling, "forge poison tamper falsify forge fabricate corrupt hijack sabotage"},
		{routing, "route redirect pass hand go forward"},
		{watching, "track monitor record watch listen spy capture stream read log activate turn"},
		{extracting, "extract collect gather decrypt recover retrieve obtain"},
		{permitting, "approve allow grant permit let enable authorize create"},
		{executing, "execute run exec eval spawn launch"},
		{destroying, "delete wipe overwrite destroy purge erase"},
		{guarding, "explain document describe block protect redact mask prevent detect reject warn deny refuse forbid exclude ignore sanitize"},
		{dropping, "drop truncate"},
		{writing, "write save create edit append modify move rename overwrite"},
		{saving, "write save append"},
		{changing, "write delete remove send pay create update transfer drop insert edit overwrite withdraw wipe move rename upload"},
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
