package actionrisk

import (
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestEffects checks that deleting a folder is the same effect in every language, and that the
// finding names the folder and its range in the text, not the equivalent command.
func TestEffects(t *testing.T) {
	for _, command := range []string{
		`rm -rf /srv/data`,
		`python3 -c 'import shutil; shutil.rmtree("/srv/data")'`,
		`node -e 'require("fs").rmSync("/srv/data", {recursive: true})'`,
		`emacs -Q --batch --eval '(delete-directory "/srv/data" t)'`,
		`julia -e 'rm("/srv/data", recursive=true)'`,
		`groovy -e 'new File("/srv/data").deleteDir()'`,
		`vim -es -c 'call delete("/srv/data","rf")' -c 'qa!'`,
		"printf 'file(REMOVE_RECURSE /srv/data)' > x.cmake && cmake -P x.cmake",
	} {
		found := false
		for _, f := range Assess(act.Action{Command: command}).Findings {
			if f.Rule.ID == "shell.rm.recursive-outside-cwd" {
				found = true
				if f.Target != "/srv/data" || f.Decoded != "" && f.Decoded != "REMOVE_RECURSE /srv/data" {
					t.Errorf("%s: about %q, decoded %q", command, f.Target, f.Decoded)
				}
			}
		}
		if !found {
			t.Errorf("%s: no finding", command)
		}
	}
}
