package emailcheck

import "github.com/countersign/countersign/policy"

// documented says what each finding is about.
func documented() []policy.Rule {
	return []policy.Rule{
		{ID: "invalid_syntax", Example: `{"email":"ann..lee@example.com"}`,
			Catches: "the address cannot be used with SMTP as written",
			Why:     "a letter to it is refused or goes to somebody else",
			Instead: "ask for the address again; diagnosis says what is wrong"},
		{ID: "disposable_domain", Example: `{"email":"ann@mailinator.com"}`,
			Catches: "the domain hands out disposable mailboxes",
			Why:     "nobody reads it next week, and anybody may open it",
			Instead: "ask for another address"},
		{ID: "reserved_domain", Example: `{"email":"ann@shop.example"}`,
			Catches: "the domain is reserved and never delivers",
			Why:     "it stands in examples and tests",
			Instead: "ask for a real address"},
		{ID: "possible_typo", Example: `{}`,
			Catches: "the domain is close to a popular one",
			Why:     "the letter goes to nobody, or to a collector of typos",
			Instead: "ask whether suggestion is meant"},
		{ID: "role_address", Example: `{"email":"admin@company.org"}`,
			Catches: "the address names an office, not a person",
			Why:     "several people read it, and it may be nobody's task",
			Instead: "do not send secrets or sign-in links to it"},
		{ID: "plus_alias", Example: `{}`,
			Catches: "the local part has a tag behind a plus",
			Why:     "one mailbox can have any number of such addresses",
			Instead: "count customers by canonicalEmail"},
		{ID: "address_literal", Example: `{"email":"ann@[192.0.2.1]"}`,
			Catches: "an address in brackets stands instead of a domain",
			Why:     "most mail servers refuse it",
			Instead: "ask for an address with a domain"},
		{ID: "single_label_domain", Example: `{"email":"ann@intranet"}`,
			Catches: "the domain has a single label",
			Why:     "it delivers inside one network at most",
			Instead: "ask for the whole domain"},
		{ID: "free_provider", Example: `{"email":"ann@gmail.com"}`,
			Catches: "the domain is a free provider",
			Why:     "it says nothing of the company that somebody claims to be from",
			Instead: "do not take it as proof of employment"},
		{ID: "mixed_script_domain", Example: `{"email":"ann@pаypal.com"}`,
			Catches: "a label of the domain mixes scripts",
			Why:     "letters that look alike imitate a known domain",
			Instead: "compare asciiDomain with the domain that is expected"},
	}
}
