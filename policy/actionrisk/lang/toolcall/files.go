package toolcall

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
	"github.com/countersign/countersign/policy/secrets"
)

// This file judges the effects of a tool call on files, addresses and settings, by the members of
// its arguments.

// pathKeys lists members that name files.
var pathKeys = scan.SetOf("path paths filepath filepaths file files filename filenames dir directory folder targetpath destination dest source sourcepath attachments attachment attachmentpath notebookpath localpath absolutepath relativepath keypath document documents imagepath uri target inputpath outputpath")

// contentKeys lists members that contain the text to write.
var contentKeys = scan.SetOf("content contents text data newstring newstr newtext filetext body newsource inserttext patch codeedit replace replacement value diff changes edit updates")

// eachText calls f with every string below n and the name of its member, down to six levels.
func (w *jsonWalk) eachText(n *tree.Node, key string, depth int, f func(key string, v *tree.Node)) {
	if n == nil || depth > 6 || !w.e.Budget.Spend(1) {
		return
	}
	for i, k := range n.Kids {
		name := n.KeysAt(i)
		if n.Kind == '[' {
			name = key
		}
		switch k.Kind {
		case '"':
			f(name, k)
		case '{', '[':
			w.eachText(k, name, depth+1, f)
		}
	}
}

// files judges the paths and addresses among the arguments as the equivalent shell commands.
func (w *jsonWalk) files(name, class string, args *tree.Node) {
	if w.src.Depth >= scan.MaxDepth {
		return
	}
	posts := posts(name)
	if w.moves(name, args) {
		return
	}
	w.searchesKeys(name, args)
	j := fileJudge{w: w, name: name, class: class, posts: posts, mayWrite: class == "write" || class == "unknown"}
	if j.mayWrite {
		j.content = w.content(args)
	}
	w.eachText(args, "", 0, j.text)
}

// fileJudge judges the strings among the arguments of one tool call.
type fileJudge struct {
	w           *jsonWalk
	name, class string
	content     string // the text that the tool writes
	posts       bool   // the tool sends its arguments to other people
	mayWrite    bool
	paths       int // number of paths judged
}

// text judges one string: a script for a web page, a patch, a file URL, the address of a cloud
// metadata service, or a path.
func (j *fileJudge) text(key string, v *tree.Node) {
	scheme, host, rest, ok := hosts.Split(v.Text)
	switch {
	case strings.HasPrefix(v.Text, "javascript:"):
		j.w.page(v, "mcp:"+act.Printable(j.name))
	case j.mayWrite && j.patch(v):
	case ok && scheme == "file":
		j.w.does(v, act.ReadFile, "", filePath(host, rest))
	case ok && hosts.MetadataHost(host):
		j.w.does(v, act.Fetch, "", v.Text)
	case j.paths <= 16 && namesFile(key, v.Text):
		j.paths++
		j.path(v)
	}
}

// namesFile reports whether the text of the member is a path.
func namesFile(key, text string) bool {
	return pathKeys.Has(tree.PlainKey(key)) && text != "" && len(text) <= 512 && !strings.Contains(text, "\n")
}

// patch judges a text that is a patch, and reports whether it is one.
func (j *fileJudge) patch(v *tree.Node) bool {
	if !strings.Contains(v.Text, "*** ") && !strings.Contains(v.Text, "+++ ") {
		return false
	}
	src := v.Source(j.w.src, "patch")
	src.At = -1
	return runPatch(j.w.e, &src)
}

// path judges the effect of the tool on the file that v names.
func (j *fileJudge) path(v *tree.Node) {
	file := outOfTree(v.Text)
	switch {
	case j.class == "destructive":
		j.w.does(v, act.DeleteTree, "", file)
	case j.class == "read":
		j.w.does(v, act.ReadFile, "", file)
	case j.content != "" && !j.posts:
		j.w.writes(v, file, j.content)
	case j.mayWrite && (j.posts || j.content == ""):
		j.w.sends(v, file, j.posts)
	}
}

// searchesKeys reports a search through the folders of a user or the system for text that only
// keys contain.
func (w *jsonWalk) searchesKeys(name string, args *tree.Node) {
	pattern, folder := args.Str("pattern", "query", "regex", "search"), args.Str("path", "directory", "dir", "root", "folder")
	if pattern == "" || folder == "" || !searches(name) {
		return
	}
	if c := w.e.ClassOf(act.Word{Text: folder}, ""); c&(paths.IsHome|paths.IsRoot|paths.IsSystem) == 0 && !strings.HasPrefix(folder, "/home") && !strings.HasPrefix(folder, "/Users") && !strings.HasPrefix(folder, "/root") {
		return
	}
	for _, sign := range [...]string{"PRIVATE KEY", "id_rsa", "id_ed25519", "AKIA", "\\.pem", "BEGIN RSA", "BEGIN OPENSSH", "aws_secret", "wallet.dat", ".kdbx", "seed phrase", "mnemonic"} {
		if strings.Contains(pattern, sign) {
			w.e.See(act.SeeksSecrets, w.src, args.Start, args.End, act.Printable(pattern))
			return
		}
	}
}

// moves judges a tool that moves or copies a file or changes its access rights, and reports
// whether it is one.
func (w *jsonWalk) moves(name string, args *tree.Node) bool {
	op, named := act.Op(0), false
	for _, word := range facts.ToolWords(bareToolName(name)) {
		if !named {
			op, named = fileVerbs[word]
		}
	}
	from, to := args.Get("source", "src", "from", "old_path", "oldPath", "source_path", "path", "file_path", "file"), args.Get("destination", "dest", "to", "target", "new_path", "newPath", "destination_path", "mode", "permissions", "owner")
	if !named || from == nil || to == nil || from.Kind != '"' || to.Text == "" {
		return false
	}
	if op == act.ChangeMode || op == act.ChangeOwner {
		w.does(from, op, to.Text, outOfTree(from.Text))
	} else {
		w.does(from, op, "", outOfTree(from.Text), outOfTree(to.Text))
	}
	return true
}

// fileVerbs maps words in names of tools that act on whole files to their effects.
var fileVerbs = map[string]act.Op{"move": act.MoveFile, "rename": act.MoveFile, "mv": act.MoveFile, "copy": act.CopyFile, "cp": act.CopyFile, "chmod": act.ChangeMode, "permissions": act.ChangeMode,
	"permission": act.ChangeMode, "chown": act.ChangeOwner, "owner": act.ChangeOwner, "symlink": act.LinkFile, "link": act.LinkFile}

// does judges an effect of a tool on files. The member v names them.
func (w *jsonWalk) does(v *tree.Node, op act.Op, mode string, on ...string) {
	w.emit(w.effect(v, op, mode, on))
}

// writes judges a tool that writes a text to a file.
func (w *jsonWalk) writes(v *tree.Node, file, content string) {
	f := w.effect(v, act.Overwrite, "", []string{file})
	f.Writes = content
	w.emit(f)
}

func (w *jsonWalk) effect(v *tree.Node, op act.Op, mode string, on []string) act.Effect {
	f := act.Effect{Op: op, Mode: mode, From: v.Start, To: v.End}
	span, _ := w.src.Where(v.Start, v.End)
	for _, text := range on {
		f.On = append(f.On, act.Word{Text: text, At: -1, Span: span, Taint: w.src.Taint})
	}
	return f
}

func (w *jsonWalk) emit(f act.Effect) {
	(&interp.Process{Env: w.e, Src: w.src}).Emit(w.src, "", f)
}

// sends reports that a tool sends a file with credentials to other people.
func (w *jsonWalk) sends(v *tree.Node, file string, posts bool) {
	if c := w.e.ClassOf(act.Word{Text: file}, ""); posts && c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
		w.e.See(act.PublishesSecret, w.src, v.Start, v.End, act.Printable(file))
	}
}

// content returns the text that a tool call writes: the values of its content arguments, or the
// new lines of its edits.
func (w *jsonWalk) content(args *tree.Node) string {
	var b strings.Builder
	w.eachText(args, "", 0, func(key string, v *tree.Node) {
		if contentKeys.Has(tree.PlainKey(key)) && b.Len()+len(v.Text) < scan.MaxDecoded {
			text := v.Text
			if tree.PlainKey(key) == "diff" {
				text = strings.TrimPrefix(strings.ReplaceAll(text, "\n+", "\n"), "+")
			}
			b.WriteString(text)
			b.WriteByte('\n')
		}
	})
	if b.Len() == 0 && args.Get("content", "contents", "text", "data", "new_string", "new_str", "file_text") != nil {
		return "x"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// outOfTree returns the absolute path of a system file for a relative path such as
// "../../etc/cron.d/x", because the number of levels up is not known. It returns other paths
// unchanged.
func outOfTree(name string) string {
	if !strings.Contains(name, "../") {
		return name
	}
	clean := path.Clean(name)
	rest := strings.TrimLeft(clean, "./")
	first, _, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(clean, "../") && slices.Contains([]string{"etc", "root", "home", "proc", "var", "usr", "bin", "sbin", "boot", "lib", "opt", "sys", "dev"}, first) {
		return "/" + rest
	}
	return name
}

// filePath returns the path in a file URL.
func filePath(host, rest string) string {
	if len(host) == 1 || strings.HasSuffix(host, ":") { // for example file://C:/x
		return host + rest
	}
	return rest
}

// posts reports whether a tool with this name sends its arguments to other people. A tool that
// stores secrets does not.
func posts(name string) bool {
	words := facts.ToolWords(bareToolName(name))
	return facts.Says(words, "posts") && !facts.Says(words, "keeps")
}

// posted reports credentials in the arguments of a tool that sends them to other people.
func (w *jsonWalk) posted(name, class string, args *tree.Node) {
	if !posts(name) || args == nil {
		return
	}
	w.eachText(args, "", 0, func(_ string, v *tree.Node) {
		if class == "read" && !strings.Contains(v.Text, "://") {
			return // the text is a search query
		}
		if showsSecret(v.Text) || class != "read" && seedPhrase(v.Text) {
			w.e.See(act.PublishesSecret, w.src, v.Start, v.End, "")
		}
	})
}

// showsSecret reports whether a text contains a real credential: a private key, a token of a known
// service, or a long value of a name that means a secret.
func showsSecret(text string) bool {
	return slices.ContainsFunc(secrets.Find(text), func(s secrets.Span) bool {
		word := text[s.Start:s.End]
		switch {
		case strings.HasPrefix(word, "-----BEGIN"):
			return strings.Contains(word, "PRIVATE KEY")
		case scan.HasAnyPrefix(word, "sk_test_", "eyJ", "0x"):
			return false
		case s.Kind != secrets.NamedValue && s.Kind != secrets.URLPassword:
			return true
		}
		return longValue(text, s.Start)
	})
}

// longValue reports whether the value at position at is long, looks random and is assigned to a
// name.
func longValue(text string, at int) bool {
	word := text[at:]
	if end := strings.IndexAny(word, " \t\n\"'`,;"); end > 0 {
		word = word[:end]
	}
	return len(word) >= 16 && mixed(word) && strings.ContainsAny(text[max(0, at-3):at], "=:")
}

// someMember reports whether the test returns true for a member of n, or, if deep is true, for a
// member at any level. The test gets the member's name without punctuation.
func someMember(n *tree.Node, deep bool, so func(key string, k *tree.Node) bool) bool {
	for i, k := range n.Kids {
		if so(tree.PlainKey(n.KeysAt(i)), k) || deep && (k.Kind == '{' || k.Kind == '[') && someMember(k, deep, so) {
			return true
		}
	}
	return false
}

// seedPhrase reports whether a word such as "seed" is followed by at least twelve words like those
// of wallets: in lower case, with three to eight letters.
func seedPhrase(text string) bool {
	low := strings.ToLower(text)
	for _, word := range [...]string{"seed", "mnemonic", "recovery", "phrase"} {
		_, rest, ok := strings.Cut(low, word)
		if !ok {
			continue
		}
		n := 0
		for _, f := range strings.Fields(rest) {
			if f = strings.Trim(f, `"',.:;=()[]`); f == "" {
				continue
			}
			if len(f) < 3 || len(f) > 8 || strings.Trim(f, "abcdefghijklmnopqrstuvwxyz") != "" {
				n = 0
			} else if n++; n >= 12 {
				return true
			}
		}
	}
	return false
}

// mixed reports whether a word has letters of both cases and digits, as random values do, and is
// not an example.
func mixed(word string) bool {
	lower := strings.ToLower(word)
	for _, w := range [...]string{"example", "xxxx", "your", "placeholder", "changeme", "dummy", "redacted", "://", "${", "process.env", "getenv"} {
		if strings.Contains(lower, w) {
			return false
		}
	}
	return strings.ContainsAny(word, "0123456789") && lower != word && strings.ToUpper(word) != word
}

// setting describes a dangerous change that a tool makes with a member of its arguments: it opens
// something to the public, or removes a protection.
type setting struct {
	about  string // a group of words; the name of the tool must contain one of them
	unless string // if the name contains this word, the tool changes nothing that exists; "" for none
	holds  func(args *tree.Node) bool
	what   act.Sight
}

// settings lists dangerous changes of repositories, stores, networks and access rights.
var settings = []setting{
	{"repository", "create", becomesPublic, act.OpensProject},
	{"branch-guard", "", dropsProtection, act.DropsBranchGuard},
	{"merge", "", overridesRules, act.MergesAnyway},
	{"storage", "", opensStore, act.OpensStore},
	{"guarded", "create", dropsDeletionProtection, act.DropsGuard},
	{"network", "", opensNetwork, act.OpensNetwork},
	{"access", "", givesAdmin, act.ChangesAccess},
	{"deploy-key", "", addsWriteKey, act.ChangesAccess},
}

// changesSettings reports the dangerous changes of settings that a writing tool makes.
func (w *jsonWalk) changesSettings(name string, args *tree.Node) {
	if args == nil || args.Kind != '{' {
		return
	}
	words := facts.ToolWords(bareToolName(name))
	if promotes(words) {
		w.e.See(act.ChangesAccess, w.src, args.Start, args.End, act.Printable(name))
	}
	for _, s := range settings {
		if facts.Says(words, s.about) && !slices.Contains(words, s.unless) && s.holds(args) {
			w.e.See(s.what, w.src, args.Start, args.End, act.Printable(name))
		}
	}
}

func becomesPublic(args *tree.Node) bool {
	private := args.Get("private", "is_private", "isPrivate")
	return strings.EqualFold(args.Str("visibility", "repo_visibility"), "public") || private != nil && private.Kind == 'f'
}

// overridesRules reports whether a merge ignores the protection of the branch.
func overridesRules(args *tree.Node) bool {
	return someMember(args, false, func(key string, k *tree.Node) bool {
		return k.Kind == 't' && (key == "admin" || strings.HasPrefix(key, "bypass") || strings.HasPrefix(key, "skip") || key == "force")
	})
}

// dropsProtection reports whether the arguments switch off reviews, checks or the rules for
// administrators.
func dropsProtection(args *tree.Node) bool {
	return someMember(args, true, func(key string, k *tree.Node) bool {
		switch {
		case strings.HasPrefix(key, "allowforce") || strings.HasPrefix(key, "allowdelet"):
			return k.Kind == 't'
		case strings.HasPrefix(key, "required") || strings.HasPrefix(key, "enforce"):
			return k.Kind == 'n' || k.Kind == 'f' || k.Text == "0" || k.Text == "disabled"
		}
		return false
	})
}

func opensStore(args *tree.Node) bool {
	return someMember(args, true, func(key string, k *tree.Node) bool {
		switch key {
		case "public", "publicaccess", "publiclyaccessible":
			return k.Kind == 't'
		}
		return strings.HasSuffix(key, "acl") && strings.HasPrefix(k.Text, "public") || strings.HasPrefix(key, "blockpublic") && k.Kind == 'f' ||
			slices.Contains([]string{"allUsers", "allAuthenticatedUsers", "anyoneWithLink"}, k.Text) || key == "type" && k.Text == "anyone"
	})
}

// dropsDeletionProtection reports whether a call switches off what protects data from being
// deleted.
func dropsDeletionProtection(args *tree.Node) bool {
	return someMember(args, false, func(key string, k *tree.Node) bool {
		off := strings.Contains(key, "deletionprotection") || strings.Contains(key, "terminationprotection") || key == "versioning" || key == "backupenabled" || strings.Contains(key, "pointintimerecovery")
		return off && k.Kind == 'f' || k.Text == "0" && strings.Contains(key, "backupretention") || key == "status" && k.Text == "Suspended"
	})
}

// addsWriteKey reports whether the arguments add a key that may write to a repository.
func addsWriteKey(args *tree.Node) bool {
	only := args.Get("read_only", "readOnly")
	return only != nil && only.Kind == 'f'
}

// opensNetwork reports whether the arguments open a network to all addresses, except for the web
// ports 80 and 443.
func opensNetwork(args *tree.Node) bool {
	open := false
	for _, k := range args.Kids {
		if k.Text == "443" || k.Text == "80" {
			return false
		}
		if k.Text == "0.0.0.0/0" || k.Text == "::/0" {
			open = true
		} else if k.Kind == '[' || k.Kind == '{' {
			open = open || opensNetwork(k)
		}
	}
	return open
}

// subjectKeys lists members that name the account which gets a right.
var subjectKeys = scan.SetOf("user username userid userids useremail email emails member members memberid principal principalid principalname principalarn collaborator login assignee group groupid team account accountid subject subjects serviceaccount identity grantee invitee usernames")

// rightKeys lists members that name a right, a role, or a group that has it.
var rightKeys = scan.SetOf("role roles rolename roletype roleid permission permissions permissionlevel accesslevel access level privilege privileges group groups groupname grouptype policy policyarn scope usertype usergroup membershiprole rights authority accessrole orgrole roleslug")

func isRight(key string) bool {
	return rightKeys.Has(key) || strings.HasSuffix(key, "role") || strings.HasSuffix(key, "roles")
}

// masters lists roles and groups whose members have all rights.
var masters = scan.SetOf(`admin admins owner owners maintainer administrator administrators superadmin superuser sysadmin systemadmin systemadministrator globaladmin globaladministrator companyadministrator orgadmin organizationadmin
 orgowner organizationowner workspaceowner workspaceadmin accountadmin accountowner securityadmin privilegedroleadministrator primaryowner root domainadmins enterpriseadmins schemaadmins wheel sudo clusteradmin rolesowner roleseditor superadministrator tenantadmin fullaccess fullcontrol
 administratoraccess poweruseraccess iamfullaccess adminfullaccess dbowner useraccessadministrator rootadmin instanceadmin siteadmin serveradmin projectowner systemmasters realmadmin globaladministrators superusers dbadmin dbaadmin`)

// cloudMasters lists cloud roles with all rights, which count even if no account is named.
// adminFlags lists members that make an account an administrator.
var (
	cloudMasters = scan.SetOf("roles/owner roles/editor cluster-admin")
	adminFlags   = scan.SetOf("isadmin issuperuser superuser issuperadmin siteadmin admin")
)

// masterName returns the name of a role in lower case and without punctuation, so that
// SUPER_ADMIN, "Domain Admins" and roles/owner can be compared with masters.
func masterName(text string) string {
	if i := strings.LastIndex(text, ":policy/"); i >= 0 {
		text = text[i+len(":policy/"):]
	}
	text = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", "/", "", ":", "", ".", "").Replace(text))
	if one := strings.TrimSuffix(text, "s"); masters.Has(one) { // for example Super Admins
		return one
	}
	return text
}

// givesAdmin reports whether the arguments give an account all rights.
func givesAdmin(args *tree.Node) bool {
	subject := slices.ContainsFunc(args.Keys, func(k string) bool { return subjectKeys.Has(tree.PlainKey(k)) })
	for i, k := range args.Kids {
		switch key := tree.PlainKey(args.KeysAt(i)); {
		case k.Kind == '"' && (strings.HasSuffix(k.Text, "AdministratorAccess") || cloudMasters.Has(strings.ToLower(k.Text))),
			subject && givesRight(key, k),
			(k.Kind == '[' || k.Kind == '{') && givesAdmin(k):
			return true
		}
	}
	return false
}

// givesRight reports whether a member makes an account an administrator.
func givesRight(key string, k *tree.Node) bool {
	switch {
	case k.Kind == 't':
		return adminFlags.Has(key)
	case !isRight(key):
		return false
	case k.Kind == '"':
		return masters.Has(masterName(k.Text)) || strings.HasSuffix(strings.ToLower(k.Text), "_admin")
	}
	return k.Kind == '[' && slices.ContainsFunc(k.Kids, func(k *tree.Node) bool { return masters.Has(masterName(k.Text)) })
}

// promotes reports whether the name of the tool itself shows that it gives an account all rights.
func promotes(words []string) bool {
	last := len(words) - 1
	for i := range words {
		switch {
		case facts.Says(words[i:i+1], "promotes"):
			return slices.ContainsFunc(words[i+1:], func(w string) bool { return masters.Has(w) && w != "owner" && w != "owners" })
		case facts.Says(words[i:i+1], "sets"):
			return i < last && masters.Has(words[last]) && words[last] != "owner" && words[last] != "owners" && words[last] != "maintainer"
		}
	}
	return false
}

// pageData reports a script that sends data a web page stores for its user, such as cookies, to a
// host in the script.
func pageData(e *interp.Env, src *act.Source) {
	holds := func(list ...string) bool {
		return scan.HasAny(src.Text, list...)
	}
	if holds("document.cookie", "localStorage", "sessionStorage", "indexedDB", ".cookies(", "storageState(", "cookieStore", "type=password", "input[type=\"password") &&
		holds("fetch(", "sendBeacon(", "XMLHttpRequest", "WebSocket(", ".src", "location", "axios", "importScripts(") && namesForeignHost(src.Text) {
		e.See(act.SendsSecret, src, 0, len(src.Text), "")
	}
}

// namesForeignHost reports whether the text contains the address of another machine.
func namesForeignHost(text string) bool {
	for rest := text; ; {
		i := strings.Index(rest, "://")
		if i < 0 {
			return strings.Contains(text, "'//") || strings.Contains(text, `"//`)
		}
		_, host, _, ok := hosts.Split("x" + rest[i:])
		if host = strings.TrimRight(host, "'\"`);,"); ok && !hosts.LocalHost(host) {
			return true
		}
		rest = rest[i+3:]
	}
}
