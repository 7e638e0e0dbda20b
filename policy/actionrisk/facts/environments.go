package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

var productionWords = scan.SetOf("prod production prd live mainnet")
var developmentWords = scan.SetOf("dev development test testing ci qa sandbox local localhost preview minikube kind devnet testnet sepolia")

// Environments reports whether a text has the name of a production or a development environment.
// Words are split at each character that is not a letter or digit, and where a capital letter
// follows a lower-case letter or a digit. "nonprod", "non-prod", "preprod" and "prod-like" are
// neither.
func Environments(text string) (production, development bool) {
	previous := ""
	for i := 0; i < len(text); {
		start := i
		if i = wordEnd(text, i); !scan.Alnum(text[start]) {
			continue
		}
		w := strings.ToLower(strings.TrimRight(text[start:i], "0123456789"))
		rest := strings.ToLower(text[i:min(i+5, len(text))])
		switch {
		case productionWords.Has(w):
			production = production || previous != "non" && previous != "pre" && previous != "not" && rest != "-like" && rest != "_like"
		case developmentWords.Has(w), w == "docker" && rest == "-desk":
			development = true
		}
		previous = w
	}
	return production, development
}

// wordEnd returns the end of the word that begins at i, or i+1 if no word does.
func wordEnd(text string, i int) int {
	for i++; i < len(text) && scan.Alnum(text[i]) && scan.Alnum(text[i-1]) && !(scan.Upper(text[i]) && !scan.Upper(text[i-1])); i++ {
	}
	return i
}

// LabelOptions are options whose value names where a command acts: an environment, a cluster, a
// project, a host or a database.
var LabelOptions = scan.SetOf("--context --kube-context -n --namespace --profile --project --stage -s --stack --env -e --environment --workspace -w -a --app --config --cluster --target --subscription -P --account -l --limit -i --inventory -var-file --var-file -chdir --db --database --dbname -d --host -h --org --space --branch")
