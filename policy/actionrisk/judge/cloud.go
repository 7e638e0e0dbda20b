package judge

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// knownKinds are the Kubernetes kinds for which there are specific rules.
var knownKinds = scan.SetOf("namespace namespaces ns project pv pvc persistentvolume persistentvolumeclaim persistentvolumes persistentvolumeclaims crd crds customresourcedefinition customresourcedefinitions storageclass volumesnapshot deployment deployments deploy statefulset statefulsets sts daemonset daemonsets ds service services svc ingress ingresses ing configmap configmaps cm secret secrets cronjob cronjobs job jobs replicaset rs node nodes no hpa serviceaccount sa networkpolicy certificate all deployment.apps pod pods po event events lease clusterrolebinding clusterrole rolebinding role")

// otherResource reports whether kubectl delete names a kind without a specific rule.
func otherResource(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if len(it.Inv.Operands) < 2 {
		return act.Word{}, false
	}
	w := it.Inv.Operands[1]
	kind, _, _ := strings.Cut(w.Text, "/")
	return w, w.Lone || w.Known() && !knownKinds.Has(strings.ToLower(kind))
}

// plainAWS reports whether an AWS command is for a service without specific rules.
func plainAWS(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return act.Word{}, len(it.Inv.Operands) > 1 && !slices.Contains([]string{"iam", "sts", "kms", "cloudformation", "cloudtrail", "route53", "configure"}, it.Inv.Operand(0))
}

// awsSecret reports whether the command shows a secret value. Secrets Manager always does, the
// parameter store only with --with-decryption.
func awsSecret(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	return act.Word{}, v.Has("--with-decryption") || len(v.Operands) > 0 && v.Operands[0].Text == "secretsmanager"
}

// verbIs reports whether one of the first five operands matches, for commands of the form "tool
// noun verb name".
func verbIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(it.Inv.Operands[:min(len(it.Inv.Operands), 5)], func(w act.Word) bool { return matchesAny(w.Text, args) })
}

// alreadyRuled reports whether a more specific rule has matched the same words. Rules are tried in
// the order of the tables, so a general rule must be last.
func alreadyRuled(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	span, _ := it.Src.Where(it.From, it.To)
	for i := range e.Findings {
		f := &e.Findings[i]
		if f.Span == span && (strings.HasPrefix(f.Rule.ID, "cloud.") || strings.HasPrefix(f.Rule.ID, "nosql.")) && !strings.HasSuffix(f.Rule.ID, "-other") && !strings.HasSuffix(f.Rule.ID, ".stop-compute") {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

// knownService reports whether the tool's deletions have specific rules.
func knownService(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	switch v.Exe {
	case "gh", "glab":
		return act.Word{}, len(v.Operands) > 0 && v.Operands[0].Text != "ci"
	case "restic", "borg", "kopia":
		return act.Word{}, v.Has("forget") || v.Has("prune") || v.Has("delete")
	case "velero":
		return act.Word{}, v.Has("backup") || v.Has("schedule") || v.Has("restore")
	case "argocd", "flux", "consul", "scw":
		return act.Word{}, true
	}
	return act.Word{}, false
}

// unknownTool reports whether no table describes the program, and it is called by its name, not by
// a path.
func unknownTool(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	p := e.Program(v.Exe)
	return act.Word{}, !p.Known() && p.Proves == nil && p.Options == nil && !strings.ContainsAny(v.Path, "/")
}

func remoteSystem(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if len(v.Operands) < 2 {
		return act.Word{}, false
	}
	w := v.Operands[len(v.Operands)-1]
	host, p, ok := strings.Cut(w.Text, ":")
	if !ok || host == "" || strings.Contains(host, "/") || p == "" {
		return act.Word{}, false
	}
	if paths.UnderAny(p, "/srv", "/opt") || strings.HasPrefix(p, "/var/www") {
		return act.Word{}, false // applications are deployed to these folders
	}
	c := e.ClassOf(act.Word{Text: p}, "")
	return w, c&(paths.IsSystem|paths.IsRoot|paths.IsAccounts) != 0
}

// firstRemote reports whether git push names one of these remotes.
func firstRemote(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if len(it.Inv.Operands) < 2 {
		return act.Word{}, false
	}
	w := it.Inv.Operands[1]
	return w, slices.Contains(args, w.Text)
}

func firstWord(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	if len(it.Inv.Operands) == 0 {
		return act.Word{}, false
	}
	w := it.Inv.Operands[0]
	return w, slices.Contains(args, w.Text)
}

// madeWith reports whether an operand is a plan that the command itself created with one of these
// options.
func madeWith(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(it.Inv.Operands, func(w act.Word) bool {
		made := e.Files[e.Key(it.Inv.Cwd, w.Text)].Makes
		return made != nil && slices.ContainsFunc(args, made.Has)
	})
}
