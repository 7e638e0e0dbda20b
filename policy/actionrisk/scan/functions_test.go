package scan

import "testing"

// TestFunctions checks that each function returns the result that it has in programming languages.
func TestFunctions(t *testing.T) {
	for _, c := range []struct {
		does string
		args []string
		want string
		ok   bool
	}{
		{"base64", []string{"cm0gLXJm"}, "rm -rf", true},
		{"base64", []string{"r m!"}, "", false},
		{"base64", nil, "", false},
		{"base32", []string{"OJWSALLSMY======"}, "rm -rf", true},
		{"base32", []string{"rm"}, "", false},
		{"hex", []string{"726d"}, "rm", true},
		{"codec", []string{"ez", "rot_13"}, "rm", true},
		{"codec", []string{"rm", "utf-8"}, "rm", true},
		{"codec", []string{"rm", "zlib"}, "", false},
		{"codec", []string{"rm"}, "", false},
		{"translate", []string{"sn", "a-z", "za-y"}, "rm", true},
		{"translate", []string{"rxm", "x", ""}, "rm", true},
		{"folder", []string{"/a/b"}, "/a", true},
		{"folder", []string{".."}, "../..", true},
		{"ancestor", []string{"/a/b/c", "1"}, "/a", true},
		{"ancestor", []string{"/a/b/c", "-1"}, "/", true},
		{"ancestor", []string{"/a/b/c", "-3"}, "/a/b", true},
		{"ancestor", []string{"/a/b/c", "-4"}, "\x00", true},
		{"ancestor", []string{"/a", "99999999"}, "/", true},
		{"ancestor", []string{"a/b", "1"}, ".", true},
		{"ancestor", []string{"a/b", "-1"}, "\x00", true},
		{"ancestor", []string{"/a/b", "n"}, "\x00", true},
		{"ancestor", []string{"/a/b"}, "", false},
		{"text64", []string{"cgBtAA=="}, "rm", true},
		{"text64", []string{"cm0="}, "rm", true},
		{"trim", []string{" rm "}, "rm", true},
		{"trim", []string{"xrmy", "xy"}, "rm", true},
		{"join", []string{"-", "a", "b"}, "a-b", true},
		{"join", nil, "", false},
		{"concat", []string{"r", "m"}, "rm", true},
		{"joinpath", []string{"/a/", "b", "c"}, "/a/b/c", true},
		{"joinpath", []string{"/tmp/a", "../../b"}, "/b", true},
		{"joinpath", []string{"a", "/b"}, "/b", true},
		{"format", []string{"%s -%s", "rm"}, "rm -\x00", true},
		{"fill", []string{"{1}{0:x} {{{2}}}", "m", "r"}, "rm {\x00}", true},
		{"fill", []string{"{0"}, "", false},
		{"replace", []string{"aba", "b", "c"}, "aca", true},
		{"replace", []string{"aba", "a"}, "b", true},
		{"replace", []string{"aba", ""}, "aba", true},
		{"replace", []string{"aba", "\x00", "c"}, "", false},
		{"match", []string{"aBa", "b", "c"}, "aca", true},
		{"match", []string{"a.b", `\.`, ""}, "ab", true},
		{"match", []string{"abc", "[ac]+"}, "b", true},
		{"match", []string{"abc", "[a-c]"}, "", false},
		{"match", []string{"abc", "a|b", "c"}, "", false},
		{"substring", []string{"céde", "1", "2"}, "éd", true},
		{"substring", []string{"céde", "1"}, "éde", true},
		{"substring", []string{"céde", "9"}, "", false},
		{"substring", []string{"c\x00", "1"}, "", false},
		{"remove", []string{"céde", "1", "2"}, "ce", true},
		{"remove", []string{"céde", "1"}, "c", true},
		{"insert", []string{"ce", "1", "éd"}, "céde", true},
		{"insert", []string{"ce", "1"}, "", false},
	} {
		got, ok := Functions[c.does].Of(c.args)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s of %q is %q, %v", c.does, c.args, got, ok)
		}
	}
}

// TestFormat checks that arguments are used in order, that missing ones are replaced, and that the
// number of used arguments is right.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		format string
		args   []string
		shell  bool
		want   string
		used   int
	}{
		{"%s -%s", []string{"rm", "rf"}, true, "rm -rf", 2},
		{"%c%c", []string{"114", "109"}, false, "rm", 2},
		{"%c%c", []string{"ro", "mo"}, true, "rm", 2},
		{"%05d|%-3s|%x", []string{"7", "a", "255"}, true, "00007|a  |ff", 3},
		{"%1$s%%", []string{"x"}, false, "x%", 1},
		{"%s %s", []string{"a"}, false, "a ?", 1},
		{"%064d", []string{"1000000"}, true, "0000000000000000000000000000000000000000000000000000000001000000", 1},
	} {
		if got, used := Format(c.format, c.args, "?", c.shell); got != c.want || used != c.used {
			t.Errorf("Format(%q, %q) = %q, %d", c.format, c.args, got, used)
		}
	}
}

// TestSubstring checks that indexes count characters, and that negative ones count from the end.
func TestSubstring(t *testing.T) {
	for _, c := range []struct {
		from   int
		length []int
		want   string
	}{{1, nil, "éde"}, {0, []int{2}, "cé"}, {-2, nil, "de"}, {1, []int{-1}, "éd"}, {9, []int{1}, ""}, {-9, []int{1}, "c"}, {2, []int{-9}, ""}} {
		if got := Substring("céde", c.from, c.length...); got != c.want {
			t.Errorf("Substring(%d, %v) = %q, want %q", c.from, c.length, got, c.want)
		}
	}
}
