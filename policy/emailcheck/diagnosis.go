package emailcheck

// diagnosis is the worst property of an address. A larger number is worse. The numbers have gaps
// between the categories.
type diagnosis int

// The diagnoses have the names, numbers and order of is_email, with a few additions.
const (
	valid                 diagnosis = 0
	rfc5321TLDNumeric     diagnosis = 10
	rfc5321QuotedString   diagnosis = 11
	rfc5321AddressLiteral diagnosis = 12

	cfwsComment       diagnosis = 17
	cfwsFWS           diagnosis = 18
	undesiredNonASCII diagnosis = 25

	deprecatedLocalPart  diagnosis = 33
	deprecatedFWS        diagnosis = 34
	deprecatedQTEXT      diagnosis = 35
	deprecatedQP         diagnosis = 36
	deprecatedComment    diagnosis = 37
	deprecatedCTEXT      diagnosis = 38
	deprecatedIPv6       diagnosis = 39
	deprecatedCFWSNearAt diagnosis = 49

	rfc5322Domain               diagnosis = 65
	rfc5322TooLong              diagnosis = 66
	rfc5322LocalTooLong         diagnosis = 67
	rfc5322DomainTooLong        diagnosis = 68
	rfc5322LabelTooLong         diagnosis = 69
	rfc5322DomainLiteral        diagnosis = 70
	rfc5322DomainLiteralOBSText diagnosis = 71
	rfc5322IPv6GroupCount       diagnosis = 72
	rfc5322IPv6DoubleColons     diagnosis = 73
	rfc5322IPv6BadCharacter     diagnosis = 74
	rfc5322IPv6MaxGroups        diagnosis = 75
	rfc5322IPv6ColonStart       diagnosis = 76
	rfc5322IPv6ColonEnd         diagnosis = 77
	rfc5322LocalCharacter       diagnosis = 78

	errExpectingDTEXT           diagnosis = 129
	errNoLocalPart              diagnosis = 130
	errNoDomain                 diagnosis = 131
	errConsecutiveDots          diagnosis = 132
	errATEXTAfterCFWS           diagnosis = 133
	errATEXTAfterQS             diagnosis = 134
	errATEXTAfterDomainLiteral  diagnosis = 135
	errExpectingQPair           diagnosis = 136
	errExpectingATEXT           diagnosis = 137
	errExpectingQTEXT           diagnosis = 138
	errExpectingCTEXT           diagnosis = 139
	errBackslashEnd             diagnosis = 140
	errDotStart                 diagnosis = 141
	errDotEnd                   diagnosis = 142
	errDomainHyphenStart        diagnosis = 143
	errDomainHyphenEnd          diagnosis = 144
	errUnclosedQuotedString     diagnosis = 145
	errUnclosedComment          diagnosis = 146
	errUnclosedDomainLiteral    diagnosis = 147
	errFWSCRLFx2                diagnosis = 148
	errFWSCRLFEnd               diagnosis = 149
	errCRNoLF                   diagnosis = 150
	errDotAfterDomainLiteral    diagnosis = 162
	errMalformedUnicode         diagnosis = 163
	firstDeprecated, firstError           = deprecatedLocalPart, errExpectingDTEXT
)

// names contains the names of the diagnoses in answers.
var names = map[diagnosis]string{
	valid: "valid", rfc5321TLDNumeric: "rfc5321TLDNumeric", rfc5321QuotedString: "rfc5321QuotedString", rfc5321AddressLiteral: "rfc5321AddressLiteral",
	cfwsComment: "cfwsComment", cfwsFWS: "cfwsFWS", undesiredNonASCII: "undesiredNonAscii",
	deprecatedLocalPart: "deprecatedLocalPart", deprecatedFWS: "deprecatedFWS", deprecatedQTEXT: "deprecatedQTEXT", deprecatedQP: "deprecatedQP",
	deprecatedComment: "deprecatedComment", deprecatedCTEXT: "deprecatedCTEXT", deprecatedIPv6: "deprecatedIPv6", deprecatedCFWSNearAt: "deprecatedCFWSNearAt",
	rfc5322Domain: "rfc5322Domain", rfc5322TooLong: "rfc5322TooLong", rfc5322LocalTooLong: "rfc5322LocalTooLong", rfc5322DomainTooLong: "rfc5322DomainTooLong",
	rfc5322LabelTooLong: "rfc5322LabelTooLong", rfc5322DomainLiteral: "rfc5322DomainLiteral", rfc5322DomainLiteralOBSText: "rfc5322DomainLiteralOBSDText",
	rfc5322IPv6GroupCount: "rfc5322IPv6GroupCount", rfc5322IPv6DoubleColons: "rfc5322IPv62x2xColon", rfc5322IPv6BadCharacter: "rfc5322IPv6BadCharacter",
	rfc5322IPv6MaxGroups: "rfc5322IPv6MaxGroups", rfc5322IPv6ColonStart: "rfc5322IPv6ColonStart", rfc5322IPv6ColonEnd: "rfc5322IPv6ColonEnd",
	rfc5322LocalCharacter: "rfc5322LocalCharacter",
	errExpectingDTEXT:     "errExpectingDTEXT", errNoLocalPart: "errNoLocalPart", errNoDomain: "errNoDomain", errConsecutiveDots: "errConsecutiveDots",
	errATEXTAfterCFWS: "errATEXTAfterCFWS", errATEXTAfterQS: "errATEXTAfterQS", errATEXTAfterDomainLiteral: "errATEXTAfterDomainLiteral",
	errExpectingQPair: "errExpectingQPair", errExpectingATEXT: "errExpectingATEXT", errExpectingQTEXT: "errExpectingQTEXT", errExpectingCTEXT: "errExpectingCTEXT",
	errBackslashEnd: "errBackslashEnd", errDotStart: "errDotStart", errDotEnd: "errDotEnd", errDomainHyphenStart: "errDomainHyphenStart", errDomainHyphenEnd: "errDomainHyphenEnd",
	errUnclosedQuotedString: "errUnclosedQuotedString", errUnclosedComment: "errUnclosedComment", errUnclosedDomainLiteral: "errUnclosedDomainLiteral",
	errFWSCRLFx2: "errFWSCRLFx2", errFWSCRLFEnd: "errFWSCRLFEnd", errCRNoLF: "errCRNoLF", errDotAfterDomainLiteral: "errDotAfterDomainLiteral", errMalformedUnicode: "errMalformedUnicode",
}

// category returns the group of a diagnosis, which says how the address can be used.
func (d diagnosis) category() string {
	switch {
	case d == valid:
		return "valid"
	case d < cfwsComment:
		return "rfc5321"
	case d < firstDeprecated:
		return "cfws"
	case d < rfc5322Domain:
		return "deprecated"
	case d < firstError:
		return "rfc5322"
	}
	return "error"
}
