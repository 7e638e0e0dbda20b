package normal_test

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/normal"
)

func TestURLNormalForm(t *testing.T) {
	for in, want := range map[string]string{
		"https://api.example":                                 "https://api.example/",
		"HTTPS://API.Example.:443?q=1#top":                    "https://api.example/?q=1",
		"https://api.example:0443/x":                          "https://api.example/x",
		"http://api.example:8080/":                            "http://api.example:8080/",
		"http://api.example:/":                                "http://api.example/",
		"https://u:p@api.example/a":                           "https://api.example/a",
		"https://api.example/a?b=%2e%2e/..":                   "https://api.example/a?b=%2e%2e/..",
		"https://api.example/a?":                              "https://api.example/a?",
		"https://ａｐｉ.example/":                                "https://api.example/",
		"https://аpi.example/":                                "https://xn--pi-6kc.example/",
		"https://bücher.example/":                             "https://xn--bcher-kva.example/",
		"https://straße.example/":                             "https://xn--strae-oqa.example/",
		"https://[2001:DB8::1]:8443/":                         "https://[2001:db8::1]:8443/",
		"https://[::ffff:127.0.0.1]/":                         "https://127.0.0.1/",
		"https://api.example/%41":                             "https://api.example/%41",
		"https://api.example/a:b/..c/.d/e..":                  "https://api.example/a:b/..c/.d/e..",
		"https://api.weather.example/v1/forecast?city=Oslo":   "https://api.weather.example/v1/forecast?city=Oslo",
		"ftp://files.example/x":                               "ftp://files.example/x",
		"https://" + strings.Repeat("a", 63) + ".example/":    "https://" + strings.Repeat("a", 63) + ".example/",
		"https://api.example/" + strings.Repeat("a", 2048-20): "https://api.example/" + strings.Repeat("a", 2048-20),
	} {
		u, err := normal.ParseURL(in)
		if err != nil || u.String() != want {
			t.Errorf("%.80s: got %.80s, %v; want %.80s", in, u, err, want)
		}
	}
}

func TestURLRefused(t *testing.T) {
	for _, in := range []string{
		"", "api.example", "/path", "//api.example/", "https://", "https:///path", "https:api.example", "mailto:a@b.c",
		"https://api.example/a b", "https://api.example/\t", "https://api.example\\@evil.example/", "https://api.example/\x7f",
		"https://api.example/a/../b", "https://api.example/./b", "https://api.example/..", "https://api.example/%2e%2E/b",
		"https://api.example/a%2Fb", "https://api.example/a%5cb", "https://api.example/%00", "https://api.example/%zz",
		"https://api.example:0/", "https://api.example:65536/", "https://api.example:http/", "https://api.example:-1/",
		"https://127.1/", "https://0x7f000001/", "https://2130706433/", "https://0177.0.0.1/", "https://256.1.1.1/", "https://1.2.3.4.5/", "https://0x/",
		"https://[fe80::1%25eth0]/", "https://[::1/", "https://[127.0.0.1]/", "https://[::g]/",
		"https://a..b/", "https://.a/", "https://" + strings.Repeat("a", 64) + ".example/", "https://xn--/", "https://xn--a/", "https://a_b.example/",
		"https://-a.example/", "https://a-.example/", "https://a.example../", "https://\ufeffapi.example/", "https://api.example/\u00a0",
		"https://" + strings.Repeat("a.", 127) + "example/", "https://api.example/" + strings.Repeat("a", 2048-19), "https://api.example/\xff",
	} {
		if u, err := normal.ParseURL(in); !errors.Is(err, normal.ErrURL) {
			t.Errorf("%.80q: accepted as %.80s, %v", in, u, err)
		}
	}
}

func TestURLNotesWhatItDrops(t *testing.T) {
	u, err := normal.ParseURL("https://user@bücher.example/#f")
	if err != nil || !u.UserInfo || !u.Fragment || !u.IDN {
		t.Errorf("got %+v, %v", u, err)
	}
	if u, _ := normal.ParseURL("https://shop.xn--bcher-kva.example/"); !u.IDN {
		t.Error("an A-label is not seen as international")
	}
	if u, _ := normal.ParseURL("https://plain.example/"); u.UserInfo || u.Fragment || u.IDN {
		t.Errorf("a plain URL carries flags: %+v", u)
	}
}

func TestPrivateHosts(t *testing.T) {
	for _, host := range []string{
		"localhost", "a.localhost", "printer.local", "vault.internal", "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255",
		"192.168.1.1", "169.254.169.254", "0.0.0.0", "0.1.2.3", "100.64.0.1", "[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]",
		"[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::808:808]", "[64:ff9b:1:ffff::a9fe:a9fe]", "[::ffff:0:169.254.169.254]", "[::ffff:0:808:808]", "[2002:7f00:1::]", "[::7f00:1]",
		"127.1", "0x7f000001", "2130706433", "017700000001", "0xa9fea9fe", "192.168.257", "10.1",
		"127.0.0.1.nip.io", "169.254.169.254.nip.io", "www.10.0.0.1.nip.io", "app-10-8-0-1.nip.io", "customer-7f000001.nip.io", "a9fea9fe.nip.io", "192-168-1-250.sslip.io", "www-192-168-0-1.sslip.io",
		"--1.sslip.io", "fe80--1.sslip.io", "192-168-1-5.0123456789abcdef0123456789abcdef.plex.direct", "make-1.2.3.4-rebind-169.254-169.254-rr.1u.ms", "7f000001.08080808.rbndr.us",
		"127.0.0.1.resolver.example", "10-0-0-1.resolver.example", "a.b.192.168.7.7.resolver.example", "127.0.0.1.xip.io",
		"localtest.me", "shop.localtest.me", "lvh.me", "a.lvh.me", "vcap.me", "localhost.localdomain", "nas.lan", "router.home.arpa", "wiki.corp", "ip6-localhost", "metadata",
		"240.0.0.1", "192.0.0.192", "198.18.0.1", "168.63.129.16",
	} {
		if !normal.IsPrivate(host) {
			t.Errorf("%s is taken for public", host)
		}
	}
	for _, host := range []string{
		"api.example", "8.8.8.8", "172.32.0.1", "172.15.0.1", "192.169.0.1", "11.0.0.1", "169.253.1.1", "100.128.0.1", "[2001:4860:4860::8888]",
		"localhost.example", "notlocal", "internal.example", "mylocalhost", "134744072", "[64:ff9b::808:808]", "[64:ff9b:2::1]", "[0:0:0:1:ffff:0:808:808]",
		"8.8.8.8.nip.io", "8-8-8-8.sslip.io", "nip.io", "www.sslip.io", "ec2-54-12-3-4.compute.amazonaws.com", "1-2-3-4.resolver.example", "release-10-0-0-1.shop.example", "v10.0.1.shop.example",
		"notlocaltest.me", "lvh.me.example", "corp.example", "my-lan.example", "home.example", "203.0.113.7",
	} {
		if normal.IsPrivate(host) {
			t.Errorf("%s is taken for private", host)
		}
	}
	if !normal.IsLoopback("127.0.0.1") || !normal.IsLoopback("[::1]") || !normal.IsLoopback("localhost") || normal.IsLoopback("10.0.0.1") || normal.IsLoopback("api.example") {
		t.Error("loopback is not exactly loopback")
	}
}

func TestNumericHostsAreKeptForRules(t *testing.T) {
	for _, in := range []string{"http://127.1/", "http://0x7f000001/", "http://2130706433/"} {
		u, err := normal.ParseURLAnyHost(in)
		if err != nil || !normal.IsPrivate(u.Host) {
			t.Errorf("%s: %+v, %v", in, u, err)
		}
	}
	if addr, ok := normal.LegacyIPv4("1.2.3.4.5"); ok {
		t.Error("five parts are", addr)
	}
	for _, not := range []string{"256.0.0.1", "1.2.65536", "4294967296", "08.1.1.1", "0xg", "-1", "+1", "", "1..2"} {
		if addr, ok := normal.LegacyIPv4(not); ok {
			t.Errorf("%s is read as %s", not, addr)
		}
	}
}

func TestHostEntries(t *testing.T) {
	for _, tc := range []struct {
		entry, url      string
		allows, blocked bool
	}{
		{"api.example", "https://api.example/", true, true},
		{"API.Example.", "https://api.example/", true, true},
		{"api.example", "http://api.example/", true, true},
		{"api.example", "https://api.example:8443/", false, true},
		{"api.example:8443", "https://api.example:8443/", true, true},
		{"api.example:8443", "https://api.example/", false, true},
		{"api.example", "https://a.api.example/", false, true},
		{"api.example", "https://evilapi.example/", false, false},
		{"*.example", "https://api.example/", true, true},
		{"*.example", "https://b.a.example/", true, true},
		{"*.api.example", "https://api.example/", false, false},
		{"*.api.example", "https://xapi.example/", false, false},
		{"bücher.example", "https://xn--bcher-kva.example/", true, true},
		{"127.0.0.1", "http://127.0.0.1/", true, true},
		{"[::1]:80", "http://[::1]/", true, true},
	} {
		e, err := normal.ParseHostEntry(tc.entry)
		if err != nil {
			t.Errorf("%s: %v", tc.entry, err)
			continue
		}
		u, err := normal.ParseURL(tc.url)
		if err != nil || e.Allows(u) != tc.allows || e.Blocks(u) != tc.blocked {
			t.Errorf("%s on %s: allows %v, blocks %v, %v", tc.entry, tc.url, e.Allows(u), e.Blocks(u), err)
		}
		text := e.Host
		if e.Wildcard {
			text = "*." + text
		}
		if e.Port != 0 {
			text += ":" + strconv.Itoa(e.Port)
		}
		if again, err := normal.NormalHostEntry(text); err != nil || again != e {
			t.Errorf("%s in normal form is %s, read as %+v, %v", tc.entry, text, again, err)
		}
	}
	for _, entry := range []string{"", "*", "*.", "a.*.b", "**.a", "https://a.example", "a.example/x", "a.example:0", "a.example:65536", "a.example:x", "127.1", "*.127.0.0.1", "a b", "u@a.example"} {
		if e, err := normal.ParseHostEntry(entry); err == nil {
			t.Errorf("%s: accepted as %+v", entry, e)
		}
	}
	anyPort, _ := normal.ParseHostEntry("api.example")
	onePort, _ := normal.ParseHostEntry("api.example:81")
	if u, _ := normal.ParseURL("https://api.example:8443/"); !anyPort.Matches(u) || onePort.Matches(u) {
		t.Error("matching takes the port wrongly")
	}
	if u, _ := normal.ParseURL("https://api.example/"); (normal.HostEntry{}).Allows(u) || (normal.HostEntry{}).Blocks(u) {
		t.Error("the empty entry covers something")
	}
}

func TestNetworks(t *testing.T) {
	for in, want := range map[string]string{
		"base": "eip155:8453", "solana": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "eip155:1": "eip155:1", "Base": "Base", "mars": "mars",
	} {
		if got := normal.Network(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for _, good := range []string{"base", "solana-devnet", "eip155:8453", "cosmos:cosmoshub-4", "bip122:000000000019d6689c085ae165831e93"} {
		if !normal.IsNetwork(good) {
			t.Errorf("%s is unknown", good)
		}
	}
	for _, bad := range []string{"", "Base", "eip155:", "eip155:08453", "eip155:0x1", "eip155:", ":1", "EIP155:1", "ab:1", "abcdefghi:1", "cosmos:" + strings.Repeat("a", 33), "eip155:1 "} {
		if normal.IsNetwork(bad) {
			t.Errorf("%q is a network", bad)
		}
	}
	if !normal.IsTestnet("base-sepolia") || normal.IsTestnet("base") || !normal.IsEVM("base") || normal.IsEVM("solana") || !normal.IsSolana("solana") {
		t.Error("testnet or family is wrong")
	}
	if _, ok := normal.USDC("eip155:5"); ok {
		t.Error("USDC on an unknown network")
	}
	if !normal.IsUSDC("base", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913") || !normal.IsUSDC("", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v") ||
		!normal.IsUSDC("mars", "USDC") || normal.IsUSDC("ethereum", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913") || normal.IsUSDC("", "usdc") {
		t.Error("USDC is not recognised exactly")
	}
}

// Every address in the USDC table is in normal form.
func TestUSDCTable(t *testing.T) {
	for _, network := range []string{"base", "base-sepolia", "ethereum", "polygon", "arbitrum", "optimism", "avalanche", "solana"} {
		contract, ok := normal.USDC(network)
		if got, err := normal.Address(network, contract); !ok || err != nil || got != contract {
			t.Errorf("%s: %s, %v", network, got, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	const lower = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"
	for _, tc := range []struct {
		network, in, want string
		err               error
	}{
		// the mixed-case test vectors of EIP-55
		{"base", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", lower, nil},
		{"base", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359", nil},
		{"base", "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xdbf03b407c01e7cd3cbea99509d93f8dddc8c6fb", nil},
		{"base", lower, lower, nil},
		{"base", "0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED", lower, nil},
		{"base", "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "", normal.ErrChecksum},
		{"base", "0x0000000000000000000000000000000000000000", "", normal.ErrZero},
		{"base", "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "", normal.ErrAddress},
		{"base", lower[:41], "", normal.ErrAddress},
		{"base", lower + "0", "", normal.ErrAddress},
		{"base", "0X" + lower[2:], "", normal.ErrAddress},
		{"base", "0xg" + lower[3:], "", normal.ErrAddress},
		{"solana", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", nil},
		{"solana", lower, "", normal.ErrAddress},
		{"solana", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyT", "", normal.ErrAddress},
		{"solana", "11111111111111111111111111111111", "", normal.ErrZero},
		{"solana", "0OIl", "", normal.ErrAddress},
		{"cosmos:cosmoshub-4", "cosmos1Any", "cosmos1Any", nil},
		{"", "", "", normal.ErrAddress},
	} {
		got, err := normal.Address(tc.network, tc.in)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s %s: got %q, %v; want %q, %v", tc.network, tc.in, got, err, tc.want, tc.err)
		}
	}
	if !normal.SameAddress("0xAB", "0xab") || normal.SameAddress("aB", "ab") {
		t.Error("addresses are folded wrongly")
	}
}

func TestBase58(t *testing.T) {
	for text, want := range map[string]string{
		"2NEpo7TZRRrLZSi2U": "Hello World!", // test vector of draft-msporny-base58
		"1":                 "\x00", "11112": "\x00\x00\x00\x00\x01", "111": "\x00\x00\x00",
	} {
		if got, ok := normal.Base58(text); !ok || string(got) != want {
			t.Errorf("%s: got %q, %v", text, got, ok)
		}
	}
	for _, bad := range []string{"", "0", "O", "I", "l", "é", strings.Repeat("2", 129)} {
		if got, ok := normal.Base58(bad); ok {
			t.Errorf("%.20q decodes to %x", bad, got)
		}
	}
	if _, ok := normal.Base58(strings.Repeat("2", 128)); !ok {
		t.Error("128 characters are refused")
	}
}

func TestAmounts(t *testing.T) {
	largest := "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for _, good := range []string{"0", "1", "250000", largest} {
		if _, err := normal.Units(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "00", "01", "-1", "+1", "1.0", "1e3", " 1", "0x1", "１", largest[:77] + "6", largest + "0", strings.Repeat("9", 78)} {
		if n, err := normal.Units(bad); !errors.Is(err, normal.ErrAmount) {
			t.Errorf("%q is %v, %v", bad, n, err)
		}
	}
	for literal, want := range map[string]string{
		"0.25": "0.25", "1": "1", "1.00000000000000000001": "1.00000000000000000001", "2.50e1": "25", "1e-7": "0.0000001", "-0": "0", "100E-2": "1",
	} {
		r, err := normal.Decimal(literal)
		if err != nil {
			t.Errorf("%s: %v", literal, err)
			continue
		}
		if got, err := normal.DecimalString(r); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", literal, got, err, want)
		}
	}
	for _, bad := range []string{"", "1e-400000000", "1e401", "NaN", "Inf", "1/3", "0x1", "01", ".5", "1.", "1_0", strings.Repeat("1", 41)} {
		if r, err := normal.Decimal(bad); !errors.Is(err, normal.ErrAmount) {
			t.Errorf("%q is %v, %v", bad, r, err)
		}
	}
	if got := normal.Float(0.1); got.Cmp(big.NewRat(1, 10)) != 0 {
		t.Errorf("0.1 is %s", got)
	}
	if got := normal.Scale(big.NewInt(250000), 6); got.Cmp(big.NewRat(1, 4)) != 0 {
		t.Errorf("250000 units are %s", got)
	}
	if text, err := normal.DecimalString(big.NewRat(1, 3)); err == nil {
		t.Errorf("1/3 is %s", text)
	}
}

func TestTimestamps(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-02T03:04:05Z":           "2026-01-02 03:04:05 +0000 UTC",
		"2026-01-02T03:04:05.123456789Z": "2026-01-02 03:04:05.123456789 +0000 UTC",
		"2026-01-02T03:04:05+01:00":      "2026-01-02 02:04:05 +0000 UTC",
		"2026-01-02t03:04:05z":           "2026-01-02 03:04:05 +0000 UTC",
		"2026-01-02t03:04:05.5+01:00":    "2026-01-02 02:04:05.5 +0000 UTC",
		"1900-01-01T00:00:00Z":           "1900-01-01 00:00:00 +0000 UTC",
		"2024-02-29T23:59:59.9-23:59":    "2024-03-01 23:58:59.9 +0000 UTC",
	} {
		got, err := normal.Timestamp(in)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v; want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-1-2T03:04:05Z", "2026-01-02T3:04:05Z",
		"2026-01-02T03:04:05,1Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234567890Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-01-02T24:00:00Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+01:60", "2026-01-02T03:04:05+0100",
		"1899-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "2026-01-02T03:04:05ZZ", "2026-01-02T03:04:05Z ",
	} {
		if got, err := normal.Timestamp(bad); !errors.Is(err, normal.ErrTimestamp) {
			t.Errorf("%q: got %s, %v", bad, got, err)
		}
	}
}

func TestText(t *testing.T) {
	for _, good := range []string{"", "a", "a b", "größer", "日本"} {
		if err := normal.Text(good, false); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{" a", "a ", "\u00a0a", "a\ufeff", "a\x00b", "a\x1bb", "a\u200bb", "a\u202eb", "a\u00adb", "a\u2066b", "a\U000e0041b", "a\nb", "a\u2028b", "a\u2029b", "a\u0085b", "\xff"} {
		if err := normal.Text(bad, false); !errors.Is(err, normal.ErrText) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if normal.Text("a\nb\tc", true) != nil || normal.Text("a\x00b", true) == nil || normal.Text("a\u2028b", true) == nil || normal.Text("a\u0085b", true) == nil {
		t.Error("prose is not held to its own rules")
	}
}

// A URL in normal form does not change if it is normalized again.
func TestNormalFormsAreFixedPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.StringMatching(`[a-zA-Z]{2,5}://([a-z]+@)?[a-zA-Z0-9.ßа-я-]{1,12}(:[0-9]{1,6})?(/[a-zA-Z0-9%.~é-]{0,6}){0,3}(\?[a-z=&]{0,6})?(#x)?`).Draw(t, "url")
		u, err := normal.ParseURL(raw)
		if err != nil {
			t.Skip(err)
		}
		again, err := normal.ParseURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%s -> %s -> %s, %v", raw, u, again, err)
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://api.example:443/a?b#c", "http://[::1]:80/", "http://0x7f.1/", "https://bücher.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := normal.ParseURL(raw)
		if err != nil {
			return
		}
		again, err := normal.ParseURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("not a fixed point: %q -> %q -> %q, %v", raw, u, again, err)
		}
		normal.IsPrivate(u.Host)
	})
}

func FuzzHostEntry(f *testing.F) {
	f.Add("*.api.example:443")
	f.Add("[2001:db8::1]:80")
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := normal.ParseHostEntry(raw)
		if err != nil {
			return
		}
		u := normal.URL{Scheme: "https", Host: e.Host, Port: 443}
		if e.Port == 0 && !e.Wildcard && !e.Allows(u) {
			t.Fatalf("%q does not cover its own host", raw)
		}
	})
}

func FuzzBase58(f *testing.F) {
	f.Add("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v")
	f.Fuzz(func(t *testing.T, text string) {
		if b, ok := normal.Base58(text); ok && len(b) > len(text) {
			t.Fatalf("%q grows", text)
		}
	})
}

func FuzzDecimal(f *testing.F) {
	f.Add("1.5e-3")
	f.Fuzz(func(t *testing.T, literal string) {
		r, err := normal.Decimal(literal)
		if err != nil {
			return
		}
		text, err := normal.DecimalString(r)
		if err != nil {
			t.Fatalf("%q has no decimal form: %v", literal, err)
		}
		if again, ok := new(big.Rat).SetString(text); !ok || again.Cmp(r) != 0 {
			t.Fatalf("%q became %q", literal, text)
		}
	})
}

func FuzzTimestamp(f *testing.F) {
	f.Add("2026-01-02T03:04:05.1+01:00")
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := normal.Timestamp(text); err == nil && at.Location() != at.UTC().Location() {
			t.Fatalf("%q is not in UTC", text)
		}
	})
}
