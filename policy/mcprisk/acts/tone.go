package acts

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/meaning"
)

// tone is what a word says wherever it stands in a clause, as a set of bits. Where concept
// and deed need a grammar of who does what to what, tone needs only a clause that is
// asserted: text that says what a tool does speaks of forged passports or of a botnet
// only if it makes or uses them. What tells about them or guards against them is not
// asserted.
type tone uint64

const (
	dire      tone = 1 << iota // names an attack or a fraud by itself
	grim                       // names one together with another such word
	tame                       // words of defence and of teaching: a clause with one asserts no attack
	sham                       // what is invented
	papers                     // what people trust, and what is forged
	regard                     // whatever, regardless, even
	sly                        // silently
	ruin                       // what happens to a thing that is sabotaged
	approval                   // what a person gives before something happens
	void                       // what is said of rules that no longer count
	worry                      // what a person is said to be spared
	predicate                  // not to be seen
	rank                       // above others
	praise                     // speaks well of something
	brand                      // the publisher's own wares
	untrue                     // of results
	boon                       // what a result looks like when it hides something
	intimate                   // what people show nobody
	higher                     // whose instructions the model follows
	refusal
	mock       // what is only played
	personWord // people who use it
	anything   // whatever, every time
	hush       // of what is kept from people
	rule       // of who may command
	rivalWord  // of others
	masking    // of secrets that are not shown
	tracks     // where one sees what was done
)

var tones = sync.OnceValue(func() map[string]tone { return tableOf(toneWords) })

var toneWords = []entry[tone]{
	{dire, "zero-click hijacked sextortionist bogeyman wiretapping keylog deepfaked shakedown racket heist burglary burglar carjacking pickpocket arson kidnapping trafficking trafficker cartel militia terrorist terror assassin vigilante lynch genocide neo-nazi suicide self-harm anorexia csam grooming groomer voyeur upskirt spycam peeping blackmailer dictator dissident whistleblower refugee doxxed swatted gaslight gaslighting defamation libel slander perjury forger counterfeiter launderer ponzi pyramid_scheme boiler_room bucket_shop ripoff rip-off swindler phoney quack miracle_cure snake_oil money-mule straw_man smurfing structuring tax_fraud benefit_fraud click_fraud ad_fraud wire_fraud card-not-present bin_attack bank_drop carded cloned_card skimming shimming jackpotting relay_attack replay_attack rolljam keyless evil_maid cold_boot rubber_ducky badusb bad_usb pineapple imsi stingray ss7 rat_trojan loader_malware ransom-note doxware leakware scareware rogueware cryptolocker locker_ransomware fileless living-off-the-land lolbin dll_sideloading dll_hijacking process_hollowing reflective_injection token_impersonation dcshadow asreproast as-rep_roasting golden_saml adcs_abuse printnightmare eternalblue log4shell heartbleed shellshock bluekeep zerologon petitpotam responder_poisoning llmnr_poisoning ntlm_relay smb_relay arp_poisoning dns_poisoning cache_poisoning bgp_hijack subdomain_takeover session_fixation cookie_theft csrf_attack ssrf_attack xxe deserialization_attack padding_oracle oracle_attack privilege_abuse backchannel back-channel dead_drop exfil exfiltrator stealer_log combo_list combolist fullz botmaster bulletproof_hosting booter stresser spam_run mail_bomb mailbomb sms_bomb call_bomb robocall robocaller voice_clone nudify undresser deepnude " +
		"unrecoverable irrecoverable innocuous swat swatting ntdll exclusion_list ticket-granting_ticket harvested default_password crack_list implanted extorting keystroke keypress ntlm shadow_copy " +
		"amsi monero xmr botted puppet faked bogus fictitious unlawful unsuspecting unwitting unwittingly gullible leaked breached cracked pirated unnoticed unremarked wiretapped brute-force " +
		"brute_force lookalike look-alike deceptive pretext impersonator smear ex-partner ex-girlfriend ex-boyfriend stalker explosive tax_evasion incriminating derailment stampede off_course " +
		"self-replicating magic_prefix extra_binary untraceable anonymous_wallet insider_information front-run front-running shill rigged rig tampered doctored extorted coerced intercept_point " +
		"nobody_notice undisclosed stealth malice mischief havoc default_password swatting innocuous harvested ransom_payment unknowingly " +
		"reverse_tunnel criminals backdoor backdoored rootkit root-kit bootkit trojan trojanized trojanised ransomware malware malicious maliciously keylogger keystroke_logger keyboard_logger spyware stalkerware botnet bot_net stealer infostealer " +
		"cryptominer cryptojacker cryptojacking reverse_shell bind_shell c2 c&c command-and-control command_and_control control_server web_shell webshell meterpreter mimikatz shellcode dropper wiper logic_bomb " +
		"time_bomb fork_bomb zip_bomb exploit_kit phishing spear-phishing smishing vishing zero-day 0-day skimmer golden_ticket silver_ticket pass-the-hash pass_the_hash kerberoasting kerberoast dcsync dox doxxing doxing ddos " +
		"denial-of-service denial_of_service man-in-the-middle credential_stuffing password_spraying sim_swap sim-swap money_laundering laundering extortion blackmail sextortion espionage sabotage hacker intruder victim threat_actor attacker " +
		"attacker-controlled attacker-owned cybercriminal cybercrime fraudster malefactor thief crook scammer spammer money_mule ransom ransom_note stolen hacked counterfeit forged fraudulent spoofed covert covertly clandestine clandestinely surreptitious surreptitiously " +
		"stealthy stealthily undetected undetectable illicit nefarious sinister foothold exfiltration lateral_movement laterally privilege_escalation theft sql_injection prompt_injection code_injection command_injection remote_code_execution ntds.dit ntds lsass lsass.exe krbtgt " +
		"hashdump hash_dump sam_hive system_hive run_key sudoer disinformation propaganda troll_farm sock_puppet sockpuppet astroturfing wash_trade wash_trading pump-and-dump ballot_stuffing bioweapon nerve_agent deepfake nude undress revenge_porn hijacked unbeknownst " +
		"unauthorised_access unauthorized_access persistent_access identity_theft eavesdropping wiretap phisher scam swindle con_artist kill_switch poisoned infected weaponized weaponised evil_twin rogue_access_point jammer jamming " +
		"deauthentication deauth spoofing tailgating bribe embezzlement carding carder hitman malvertising clickjacking typosquat typosquatting typosquatted cryptodrainer drainer rug_pull honeytrap catfish catfishing loot hit_list kompromat " +
		"secretly dark_web darknet key-logger keylogging jndi"},
	{grim, "embarrassing embarrassment blame lonely judge journalist stranger borrowed unlicensed zero-width rented flaw loophole administrator_right admin_right kernel_right password_file autostart spoil ransomed marketplace activation_lock age_check blind_spot radio_code garage_door headset hotline one-star pretending made-up disguise covertness dissuade unconscious asleep drunk drugged inheritance widow pensioner retiree toddler teenager schoolchild protester activist politician candidate election celebrity ex ex-husband ex-wife mistress affair nudity explicit_picture porn pornographic fetish gambling_addict debtor bankrupt homeless inmate prisoner witness jury police_officer undercover informant passcode lock_screen safe strongbox alarm_system tripwire watchtower guardhouse bodyguard passenger_list cockpit rail_switch signal_box dam sluice chlorine reactor coolant detonator fuse gunpowder firearm ammunition silencer drone_strike ventilator dialysis infusion_pump defibrillator smoke_detector fire_alarm sprinkler elevator_brake airbag brake steering traffic_light water_supply power_grid cold_store vaccine pipeline substation relay_station mass_mailing bulk_account thousand hundreds hijack plaintext_password cleartext_password telegram_channel paste_site paste_bin public_gist drop_box dead-drop burner burner_phone prepaid_sim vpn_exit exit_node proxy_network residential_proxy open_port bind_address telnet netcat socat reverse_proxy port_4444 4444 listener handler stager loader shell_access root_shell bash_history cron authorized_keys launch_agent launch_daemon startup registry_key winlogon logon_script group_policy golden_image master_key skeleton_key backdoored_image unsanctioned unapproved unlogged unrecorded uncensored unlawfully forbidden prohibited banned sanctioned_country embargo dual-use reconstruct trace_back attribution incrimination deniability plausible_deniability " +
		"remote_access crowdstrike sentinelone sophos mcafee kaspersky bitdefender carbon_black microsoft_defender windows_defender irreversible irreversibly recovery syscall system_call exclusion " +
		"emergency_call master_password scheduled_task advertisement kerberos hive domain_admin domain_controller antivirus anti-virus edr hypnotic dormant reboot elevated unprivileged_user privilege " +
		"captcha one-time_code one-time_password otp bot fake invented rogue spam fraud criminal crime illegal illegally unauthorised unauthorized unaware elderly competitor rival broker outsider " +
		"evidence hidden invisible unseen unsupervised unpatched vulnerability vulnerable exploit exploitable weakness payload beacon persistence microphone webcam keyboard clipboard shell_history " +
		"password_hash hash_table rainbow_table wordlist brute attack target bait decoy misleading disguised passport id_card driving_licence licence driver_license false-flag voter vote ballot " +
		"spouse girlfriend wife husband minor weapon poison toxin pathogen narcotic drug bomb casino offshore sanction investigator forensic alibi chaos outage blackout panic setpoint plc scada " +
		"turbine centrifuge insulin pacemaker satellite collision seed_phrase recovery_phrase private_picture intimate compromising audit_trail event_log audit_log security_log trace zombie infection " +
		"polymorphic obfuscated packed unsigned unindicated indicator_light led boot_sector boot_record firmware_update obscure mixer tumbler insider wash churn bidder out-of-range unsafe_level " +
		"overdose noticing stealing harm intrusion breach incognito background convincingly executive password_pair secretive guessed anonymously"},
	{tame, "timeline harder difficult impossible safer report ticket incident alert warning notice case investigation investigator's quarantine filter watchlist indicator detection detector rule signature simulation simulator simulated training trainee trainer awareness test testing testers lab laboratory playground honeypot ctf exercise drill benchmark " +
		"feed statistic protection prevention defence defense mitigation remediation response guide guideline plan playbook runbook policy policies advisory risk threat analyst score probability likelihood attempt lesson course quiz tutorial documentation doc example sample research paper article news " +
		"scanner scan checker classifier blocklist block_list denylist block deny ban hardening patch fix resilience resistant robust anti-phishing anti-malware anti-spam anti-fraud history museum glossary definition taxonomy framework matrix technique " +
		"suspicious suspect suspected insurance compliance forensics ids ips siem soc waf honeytoken canary bounty pentest penetration_test red_team consent-based dummy placeholder mock fixture staging demo lorem count"},
	{sham, "fake faked bogus fictitious invented made-up forged counterfeit fabricated phony phoney nonexistent non-existent duplicate_identity false spurious sham stolen synthetic lookalike look-alike imitation cloned look-alikes five-star glowing one-star"},
	{papers, "account review rating identity identities id passport licence license certificate diploma degree invoice receipt page site website login news profile persona voice claim vote signature follower like endorsement testimonial comment document seal stamp badge prescription reference letter cheque check banknote note ticket " +
		"brand_page package update installer notification login_page app webshop shop charity caller caller_id number sender sender_address header domain alibi evidence medical_certificate payslip statement bank_statement survey_answer click view install download stream play customer user name"},
	{regard, "whatever regardless irrespective even no_matter whichever however anyway notwithstanding despite always"},
	{sly, "unnoticed secrecy noticing knowing silently quietly discreetly secretly covertly stealthily surreptitiously clandestinely unobtrusively invisibly furtively tacitly unannounced stealth noiselessly sneakily"},
	{ruin, "fail crash overheat explode collapse malfunction burst derail burn starve choke overflow collide brick break die bleed hang freeze fall melt"},
	{approval, "approval confirmation consent permission review sign-off signoff authorisation authorization ok okay go-ahead confirm human-in-the-loop human_review second_look second_opinion oversight supervision"},
	{void, "revoke cancel lift suspend supersede withdraw rescind repeal annul waive retire abolish void outdated obsolete cancelled canceled lifted suspended invalid superseded revoked withdrawn overridden overruled optional secondary irrelevant inapplicable expired disabled repealed annulled moot off waived dropped abolished retired deprecated rescinded null ended"},
	{worry, "confuse alarm worry distract bother irritate annoy unsettle upset scare overwhelm burden disturb frighten clutter bore puzzle embarrass concern trouble needlessly"},
	{predicate, "invisible hidden unnoticed undetected unaware opaque quiet silent mum secret undetectable unseen unremarked unmentioned undisclosed confidential discreet oblivious ignorant clueless unsuspecting uninformed unreported unlisted unlogged untold low-key tight-lipped unspoken"},
	{rank, "authority priority rank outrank override supersede overrule trump prevail overrides outweigh supreme above higher highest first primary authoritative binding final"},
	{praise, "recommend praise promote advertise endorse favor favour prefer push plug extol tout upsell cross-sell recommendation"},
	{brand, "our us ours sponsor sponsored partner affiliate brand publisher"},
	{untrue, "false wrong invented made-up fabricated fake inflated exaggerated misleading untrue fictitious incorrect bogus plausible random better higher lower rosy doctored adjusted"},
	{boon, "passed valid only nothing normal ordinary routine harmless innocent clean untouched successful genuine legitimate authentic organic legit empty fine unchanged approved accidental coincidence unrelated"},
	{intimate, "direct_message private_message dm sms text_message medical_record patient_record health_record health_data medical_data tax_return payslip diary private_picture private_photo private_note private_repository bank_statement bank_detail bank_account_number national_id social_security_number browsing_history browser_history location_history call_log customer_list price_sheet trade_secret source_code source_tree codebase unpublished unreleased confidential classified home_address passport_number biometric fingerprint keyring vault love_letter mailbox inbox address_book contact_list phone_book search_history voicemail"},
	{higher, "system_prompt developer developer_message safety_guideline safety_rule safety_policy system_message system_instruction guardrail"},
	{refusal, "refuse refusal refusing decline declining"},
	{mock, "simulation simulator simulated training trainee trainer awareness test testing lab laboratory playground honeypot ctf exercise drill benchmark fixture staging demo dummy placeholder mock"},
	{personWord, "user owner customer person people human reviewer reader listener viewer somebody someone anyone anybody nobody everyone whoever client employee auditor supervisor operator admin administrator approver requester recipient holder colleague team"},
	{anything, "whenever whatever anything everything whichever regardless"},
	{hush, "bury disguise conceal pretend feign deny downplay secrecy discreet discreetly tight-lipped mum unspoken unmentioned unremarked clueless oblivious ignorant unaware uninformed undisclosed unnoticed suspicion suspicious suspect wonder enquire inquire curious disclosure disclose divulge admit confess paraphrase allude " +
		"disappear vanish secretly quietly silently covertly invisible unseen cover-up euphemism confidential confidentially"},
	{rule, "obey obedience allegiance loyalty wishes commander master authority upgraded unrestricted jailbreak signed-off orders directives obedient subordinate sovereign"},
	{rivalWord, "rival competitor competing"},
	{masking, "masked redacted hidden encrypted hashed stripped removed never"},
	{tracks, "transcript summary answer reply response report output recap list log history explanation overview view screen dialog message changelog audit diff receipt notification notice digest statement result text account confirmation"},
}

// wordsOf calls yield with the words that belong to the clause alone: its subject, the
// adverbs before its verb and what stands behind it.
func (a *Act) wordsOf(yield func(meaning.Word) bool) {
	for _, w := range a.Topic {
		if !yield(w) {
			return
		}
	}
	before := a.Before
	for i := len(before) - 1; i >= 0 && i >= len(before)-3 && len(a.Topic) == 0; i-- {
		if !strings.HasSuffix(before[i].Text, "ly") {
			break
		}
		if !yield(before[i]) {
			return
		}
	}
	if a.Verb == "" { // Rest is Topic
		return
	}
	for _, w := range a.Rest {
		if !yield(w) {
			return
		}
	}
}

// wordsAndVerb are the words of the clause and its verb.
func (a *Act) wordsAndVerb(yield func(meaning.Word) bool) {
	if a.head { // and what stands before the subject
		for _, w := range a.Before {
			if !yield(w) {
				return
			}
		}
	}
	verb, _, _ := strings.Cut(a.Verb, " ")
	if verb != "" && !yield(meaning.Word{Text: verb, Base: verb}) {
		return
	}
	a.wordsOf(yield)
}

// sounds is the tone of all words of the clause, and points what they count: two for a
// dire word, one for each grim one. Compounds are read in any spelling: "key-logger",
// "back door".
func (a *Act) sounds() {
	var seen, last string
	verb, _, _ := strings.Cut(a.Verb, " ")
	a.tone = tones()[verb] & (worry | rank | void | praise | regard | refusal)
	for w := range a.wordsOf {
		t := toneOfWord(w)
		if last != "" {
			t |= tones()[last+" "+w.Base] | tones()[last+w.Base]
		}
		last = w.Base
		a.tone |= t
		switch {
		case t&dire != 0:
			a.points += 2
		case t&grim != 0 && seen != w.Base:
			a.points++
			seen = w.Base
		}
	}
}

// toneOfWord is the tone of one word, its hyphens left out where it is unknown.
func toneOfWord(w meaning.Word) tone {
	t := tones()[w.Text] | tones()[w.Base]
	if t == 0 && strings.Contains(w.Base, "-") {
		t = tones()[strings.ReplaceAll(w.Base, "-", "")]
	}
	return t
}

// toneOf is the tone of some words, each for itself.
func toneOf(words []meaning.Word) (all tone) {
	for _, w := range words {
		all |= toneOfWord(w)
	}
	return all
}

// weight is what the clause counts towards an attack: its words, its verb, and what it
// does with what is private.
func (a *Act) weight() (points int) {
	switch {
	case a.verb&dreadful != 0:
		points = 2
	case a.verb&dismal != 0:
		points = 1
	}
	// What is deleted or watched is not what the tool is: "deletes phishing mails".
	if a.verb&erasing == 0 && !(a.verb&watching != 0 && a.verb&dismal == 0 && !a.coverts()) || a.tone&dire == 0 {
		points += a.points
	}
	if a.Opening == "to" && a.verb&taking != 0 && a.object&secret != 0 {
		points++ // a page to collect passwords
	}
	things := a.object | a.around
	takes := a.verb&(taking|moving|grabbing|extracting|stealing|handing) != 0
	switch {
	case takes && a.object&(rooted|talk|secret|environ) != 0 && a.object&info == 0, takes && a.object&personal != 0 && a.around&owner != 0, takes && a.tone&intimate != 0, a.verb&opening != 0 && a.object&(rooted|secret) != 0 && a.around&owner != 0, a.verb&(erasing|destroying) != 0 && things&owner != 0 && things&(personal|files) != 0:
		points++
	}
	if a.serves() && a.names("control", "controlled", "operate", "purposes", "disposal", "hands") {
		points += 2
	} else if takes && (a.where|a.whom)&outside != 0 || a.serves() {
		points++
	}
	if a.tone&sly != 0 || a.coverts() {
		points++
	}
	return points
}

// serves says whether what is done is done for the people behind the tool: "to a server
// we run", "runs our class".
func (a *Act) serves() bool {
	if a.verb&(taking|moving|making|replacing|executing|handing|using|changing|extracting) == 0 {
		return false
	}
	for i, w := range a.Rest {
		switch w.Text {
		case "us", "ours", "authors", "publishers", "makers":
			return true
		case "we":
			return i > 1 && (a.next != nil && a.next.verb != 0 || a.names("control", "operate", "own", "run"))
		case "our":
			if i+1 < len(a.Rest) && !slices.Contains(harmlessOurs, a.Rest[i+1].Base) && !slices.Contains(harmlessOurs, a.Rest[len(a.Rest)-1].Base) {
				return true
			}
		}
	}
	return false
}

// harmlessOurs are things of a publisher that a tool may well be about.
var harmlessOurs = strings.Fields("team support staff doc documentation website site page customer user product policy help blog shop store company organisation organization api sdk newsletter office phone guide price catalogue catalog knowledge forum community tracker roadmap schedule hotel restaurant service")

// blinds says whether the clause says that something is no longer seen by those who watch.
func (a *Act) blinds() bool {
	return a.Negated && (a.Opening == "so" || a.Opening == "that" || a.Opening == "and" || a.Opening == "") && a.Subject != meaning.Implied &&
		slices.Contains([]string{"see", "inspect", "scan", "detect", "find", "notice", "log", "record", "block", "flag", "spot", "recognise", "recognize", "catch", "trace", "alert", "observe", "intercept", "reconstruct", "prove", "tell", "know", "realise", "realize", "guess", "suspect"}, a.Verb)
}
