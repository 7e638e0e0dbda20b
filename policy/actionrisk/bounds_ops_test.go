package actionrisk

import (
	"maps"
	"strings"
)

// operationBombs are hostile texts for the parsers of files for operations tools.
var operationBombs = map[string]string{
	"manifest list": "kubectl apply -f - <<'E'\n" + strings.Repeat("- ", 900) + "\nE", "manifest keys": "kubectl apply -f - <<'E'\n" + strings.Repeat("a: \n", 480) + "\nE",
	"manifest deep": "kubectl apply -f - <<'E'\n" + deepYAML(60) + "\nE", "manifest flow": "kubectl apply -f - <<< '" + strings.Repeat("[{a: ", 380) + "'", "manifest quotes": "kubectl apply -f - <<'E'\n" + strings.Repeat("'a': \"b\n", 210) + "E",
	"manifest documents": "kubectl apply -f - <<'E'\n" + strings.Repeat("a: b\n---\n", 210) + "E", "manifest commands": "kubectl apply -f - <<'E'\nitems:\n" + strings.Repeat("- command: [sh, -c, ls]\n", 80) + "E",
	"manifest items": "kubectl apply -f - <<'E'\n" + strings.Repeat("items: [{items: [{", 100) + "\nE", "patch": "kubectl patch x -p '" + strings.Repeat(`[{"op":"add","path":"/replicas","value":0},`, 42) + "'",
	"edited": "KUBE_EDITOR='sed " + strings.Repeat("s/replicas:/replicas: 0/;", 70) + "' kubectl edit x", "edited (2)": "kubectl get x | " + strings.Repeat("sed s/a/replicas:/|", 95) + "kubectl apply -f -", "dry": "kubectl create ns a --dry-run=client -o yaml" + strings.Repeat("|kubectl apply --dry-run=client -f -", 50) + "|kubectl apply -f -",
	"kubeconfig": "kubectl --kubeconfig <(printf 'users:\n" + strings.Repeat(`- user: {exec: {command: ls}}\n`, 50) + "') get x", "compose": "docker compose -f - up <<'E'\nservices:\n" + strings.Repeat(" a:\n  command: ls\n", 100) + "E",
	"dockerfile": "docker build - <<'E'\n" + strings.Repeat("RUN ls\n", 260) + "E", "dockerfile (2)": "docker build - <<'E'\n" + strings.Repeat("RUN a \\\n", 220) + "E", "dockerfile (3)": "docker build - <<'E'\n" + strings.Repeat("RUN <<A\n", 230) + "E",
	"playbook": "ansible-playbook - <<'E'\n" + strings.Repeat("- shell: ls\n", 150) + "E", "playbook loop": "ansible-playbook - <<'E'\n" + strings.Repeat("- shell: ls {{ item }}\n  loop: [1,2,3,4,5,6,7,8]\n", 38) + "E", "playbook blocks": "ansible-playbook - <<'E'\n" + strings.Repeat("- block: [{block: [{", 90) + "\nE",
	"lookups": "ansible all -m debug -a \"msg={{" + strings.Repeat(" 'pipe','ls' ", 140) + "}}\"", "templates": "ansible all -a '" + strings.Repeat("{{ a }}", 270) + "'", "module": "ansible all -m file -a '" + strings.Repeat("path=/a ", 230) + "state=absent'",
	"puppet": "puppet apply -e '" + strings.Repeat(`file{"/a":ensure=>absent}`, 75) + "'", "puppet titles": "puppet apply -e 'file{[" + strings.Repeat(`"/a",`, 370) + "]:ensure=>absent}'", "puppet braces": "puppet apply -e '" + strings.Repeat("a{", 950) + "'", "puppet bodies": "puppet apply -e 'file{" + strings.Repeat(`"/a":ensure=>absent;`, 90) + "}'",
	"chef": "chef-apply -e '" + strings.Repeat(`file("/a"){action :delete};`, 70) + "'", "chef heredocs": "chef-apply -e '" + strings.Repeat("bash \"a\" do code <<A\n", 85) + "'", "hcl": "cat > a.tf <<'E'\n" + strings.Repeat("command = \"ls\"\n", 125) + "E\nterraform apply", "hcl lists": "cat > a.tf <<'E'\n" + strings.Repeat("inline=[", 230) + "\nE\nterraform apply",
	"hcl heredocs": "cat > a.tf <<'E'\n" + strings.Repeat("command=<<A\n", 155) + "E\nterraform apply", "sdk": "python3 -c 'import boto3;" + strings.Repeat("a.delete_bucket();", 105) + "'", "variables": strings.Repeat("TF_CLI_ARGS=-a terraform apply;", 62), "options": "TF_CLI_ARGS='" + strings.Repeat("-a ", 640) + "' terraform " + strings.Repeat("a ", 20),
	"commands": "aws ssm send-command --parameters 'commands=[" + strings.Repeat(`"ls",`, 370) + "]'", "cloud-init": "multipass launch --cloud-init - <<'E'\n#cloud-config\nruncmd:\n" + strings.Repeat("- ls\n", 370) + "E", "console": "ansible-console <<'E'\n" + strings.Repeat("shell ls\n", 210) + "E", "plugins": "echo ls > ~/bin/a-b;" + strings.Repeat("a b;", 480),
	"plans": strings.Repeat("terraform plan -out=a;terraform apply a;", 48), "container": "curl -d '" + strings.Repeat(`{"HostConfig":{"Binds":["/:/a"]}},`, 54) + "' http://a/containers/create",
}

func deepYAML(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// allBombs returns writtenBombs and operationBombs together.
func allBombs() map[string]string {
	all := maps.Clone(writtenBombs)
	maps.Copy(all, operationBombs)
	return all
}
