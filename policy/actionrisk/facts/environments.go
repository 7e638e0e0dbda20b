package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

var productionWords = scan.SetOf("prod production prd live mainnet")
var developmentWords = scan.SetOf("dev development test testing ci qa sandbox local localhost preview minikube kind devnet testnet sepolia")

// Environments tells whether a text names a production or a development
// environment. Words are split at everything that is no letter or digit and at
// changes of case; "nonprod", "non-prod", "preprod" and "prod-like" are neither.
func Environments(text string) (production, development bool) {
	if text == "" {
		return false, false
	}
	previous := ""
	for i := 0; i < len(text); {
		if !scan.Alnum(text[i]) {
			i++
			continue
		}
		start := i
		for i++; i < len(text) && scan.Alnum(text[i]) && !(scan.Upper(text[i]) && !scan.Upper(text[i-1])); i++ {
		}
		w := strings.ToLower(strings.TrimRight(text[start:i], "0123456789"))
		rest := strings.ToLower(text[i:min(i+5, len(text))])
		switch {
		case productionWords[w] && previous != "non" && previous != "pre" && previous != "not" && rest != "-like" && rest != "_like":
			production = true
		case developmentWords[w]:
			development = true
		case w == "docker" && strings.HasPrefix(rest, "-desk"):
			development = true
		}
		previous = w
	}
	return production, development
}

// LabelOptions are options whose value says where a command works.
var LabelOptions = scan.SetOf("--context --kube-context -n --namespace --profile --project --stage -s --stack --env -e --environment --workspace -w -a --app --config --cluster --target --subscription -P --account -l --limit -i --inventory -var-file --var-file -chdir --db --database --dbname -d --host -h --org --space --branch")
