package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// knownKinds are the Kubernetes kinds that have rules of their own.
var knownKinds = scan.SetOf("namespace namespaces ns project pv pvc persistentvolume persistentvolumeclaim persistentvolumes persistentvolumeclaims crd crds customresourcedefinition customresourcedefinitions storageclass volumesnapshot deployment deployments deploy statefulset statefulsets sts daemonset daemonsets ds service services svc ingress ingresses ing configmap configmaps cm secret secrets cronjob cronjobs job jobs replicaset rs node nodes no hpa serviceaccount sa networkpolicy certificate all deployment.apps pod pods po event events lease clusterrolebinding clusterrole rolebinding role")

// otherResource: kubectl delete of a kind that no other rule names.
func otherResource(_ *engine, it *item, _ []string) (Word, bool) {
	if len(it.inv.operands) < 2 {
		return Word{}, false
	}
	w := it.inv.operands[1]
	kind, _, _ := strings.Cut(w.Text, "/")
	return w, w.Lone || w.known() && !knownKinds[strings.ToLower(kind)]
}

// plainAWS: the call changes something, and no rule says more about it.
func plainAWS(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) < 2 {
		return Word{}, false
	}
	service := v.operands[0].Text
	return Word{}, service != "iam" && service != "sts" && service != "kms" && service != "cloudformation" && service != "cloudtrail" && service != "route53" && service != "configure"
}

// awsSecret: Secrets Manager always shows the value, the parameter store only
// with --with-decryption.
func awsSecret(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	return Word{}, v.has("--with-decryption") || len(v.operands) > 0 && v.operands[0].Text == "secretsmanager"
}

// verbIs: a command of the shape "tool noun verb name" has its verb early.
func verbIs(_ *engine, it *item, args []string) (Word, bool) {
	for _, w := range it.inv.operands[:min(len(it.inv.operands), 5)] {
		for _, a := range args {
			if matchWord(a, w.Text) {
				return w, true
			}
		}
	}
	return Word{}, false
}

// alreadyRuled: a rule that says more has matched the same words. Rules are
// tried in table order, so the general line stands last.
func alreadyRuled(e *engine, it *item, _ []string) (Word, bool) {
	span, _ := it.src.where(it.from, it.to)
	for i := range e.findings {
		f := &e.findings[i]
		if f.Span == span && (strings.HasPrefix(f.Rule.ID, "cloud.") || strings.HasPrefix(f.Rule.ID, "nosql.")) && !strings.HasSuffix(f.Rule.ID, "-other") && !strings.HasSuffix(f.Rule.ID, ".stop-compute") {
			return Word{}, true
		}
	}
	return Word{}, false
}

// knownService: the tools whose deletes have rules of their own.
func knownService(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	switch v.exe {
	case "gh", "glab":
		return Word{}, len(v.operands) > 0 && v.operands[0].Text != "ci"
	case "restic", "borg", "kopia":
		return Word{}, v.has("forget") || v.has("prune") || v.has("delete")
	case "velero":
		return Word{}, v.has("backup") || v.has("schedule") || v.has("restore")
	case "argocd", "flux", "consul", "scw":
		return Word{}, true
	}
	return Word{}, false
}

// unknownTool: no table, reader, wrapper or proof knows the program.
func unknownTool(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	return Word{}, !e.exe[v.exe] && e.readonly[v.exe] == nil && e.tools[v.exe] == nil && e.wrappers[v.exe] == nil && !strings.ContainsAny(v.path, "/")
}

func remoteSystem(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) < 2 {
		return Word{}, false
	}
	w := v.operands[len(v.operands)-1]
	host, p, ok := strings.Cut(w.Text, ":")
	if !ok || host == "" || strings.Contains(host, "/") || p == "" {
		return Word{}, false
	}
	if paths.UnderAny(p, "/srv", "/opt") || strings.HasPrefix(p, "/var/www") {
		return Word{}, false // where applications are deployed to
	}
	c := e.classOf(Word{Text: p}, "")
	return w, c&(paths.IsSystem|paths.IsRoot|paths.IsAccounts) != 0
}

// firstRemote: the remote that git push names.
func firstRemote(_ *engine, it *item, args []string) (Word, bool) {
	if len(it.inv.operands) < 2 {
		return Word{}, false
	}
	w := it.inv.operands[1]
	return w, slices.Contains(args, w.Text)
}

func firstWord(_ *engine, it *item, args []string) (Word, bool) {
	if len(it.inv.operands) == 0 {
		return Word{}, false
	}
	w := it.inv.operands[0]
	return w, slices.Contains(args, w.Text)
}

// madeWith: an operand is a plan that the command itself made with one of these
// options.
func madeWith(e *engine, it *item, args []string) (Word, bool) {
	for _, w := range it.inv.operands {
		if made := e.files[paths.FileKey(it.inv.cwd, w.Text)].makes; made != nil && slices.ContainsFunc(args, made.has) {
			return w, true
		}
	}
	return Word{}, false
}
