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

// What a tool does to files, addresses and settings by the members of its
// arguments: what it reads, writes, deletes and sends out.

// pathKeys are members that name files.
var pathKeys = scan.SetOf("path paths filepath filepaths file files filename filenames dir directory folder targetpath destination dest source sourcepath attachments attachment attachmentpath notebookpath localpath absolutepath relativepath keypath document documents imagepath uri target inputpath outputpath")

// contentKeys are members whose text is written.
var contentKeys = scan.SetOf("content contents text data newstring newstr newtext filetext body newsource inserttext patch codeedit replace replacement value diff changes edit updates")

// eachText calls f with every string below n and the name of its member, as deep
// as arguments go.
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

// files judges paths and addresses as the shell commands that do the same.
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

// fileJudge judges the texts among the arguments of a call of a tool.
type fileJudge struct {
	w           *jsonWalk
	name, class string
	content     string // what it writes
	posts       bool   // it sends to others
	mayWrite    bool
	paths       int // judged so far
}

// text judges one: a page's script, a patch, an address of files or of a machine's
// credentials, a path.
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

// namesFile tells whether a member's text is a path.
func namesFile(key, text string) bool {
	return pathKeys.Has(tree.PlainKey(key)) && text != "" && len(text) <= 512 && !strings.Contains(text, "\n")
}

// patch runs a text that is one.
func (j *fileJudge) patch(v *tree.Node) bool {
	if !strings.Contains(v.Text, "*** ") && !strings.Contains(v.Text, "+++ ") {
		return false
	}
	src := v.Source(j.w.src, "patch")
	src.At = -1
	return runPatch(j.w.e, &src)
}

// path judges what becomes of a file.
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

// searchesKeys: a search through a user's folders for what only keys look like.
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

// moves judges a tool that moves or copies a file, or changes who may use it.
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

// fileVerbs are words of tools that handle whole files, with what they do.
var fileVerbs = map[string]act.Op{"move": act.MoveFile, "rename": act.MoveFile, "mv": act.MoveFile, "copy": act.CopyFile, "cp": act.CopyFile, "chmod": act.ChangeMode, "permissions": act.ChangeMode,
	"permission": act.ChangeMode, "chown": act.ChangeOwner, "owner": act.ChangeOwner, "symlink": act.LinkFile, "link": act.LinkFile}

// does judges what a tool does to the files that the member v names.
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

// sends: a file of credentials is handed to a tool that sends it out.
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

// outOfTree: "../../etc/cron.d/x" leaves the folder that it is relative to for one
// of the system; the number of levels is not known.
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

// filePath is the path of a file: address.
func filePath(host, rest string) string {
	if len(host) == 1 || strings.HasSuffix(host, ":") { // file://C:/x
		return host + rest
	}
	return rest
}

// posts tells whether a tool of that name sends to others what it is given; one
// that keeps secrets does not.
func posts(name string) bool {
	words := facts.ToolWords(bareToolName(name))
	return facts.Says(words, "posts") && !facts.Says(words, "keeps")
}

// posted: credentials are in what is sent to others.
func (w *jsonWalk) posted(name, class string, args *tree.Node) {
	if !posts(name) || args == nil {
		return
	}
	w.eachText(args, "", 0, func(_ string, v *tree.Node) {
		if class == "read" && !strings.Contains(v.Text, "://") {
			return // what is looked for
		}
		if showsSecret(v.Text) || class != "read" && seedPhrase(v.Text) {
			w.e.See(act.PublishesSecret, w.src, v.Start, v.End, "")
		}
	})
}

// showsSecret: a text holds what only a real credential looks like: a private key,
// a token of a known service, a long value given to a name that means a secret.
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

// longValue: a long value that chance made is given to a name.
func longValue(text string, at int) bool {
	word := text[at:]
	if end := strings.IndexAny(word, " \t\n\"'`,;"); end > 0 {
		word = word[:end]
	}
	return len(word) >= 16 && mixed(word) && strings.ContainsAny(text[max(0, at-3):at], "=:")
}

// someMember tells whether a member is so by its name without signs; below too, if deep.
func someMember(n *tree.Node, deep bool, so func(key string, k *tree.Node) bool) bool {
	for i, k := range n.Kids {
		if so(tree.PlainKey(n.KeysAt(i)), k) || deep && (k.Kind == '{' || k.Kind == '[') && someMember(k, deep, so) {
			return true
		}
	}
	return false
}

// seedPhrase: after a word for it, twelve words or more as wallets write theirs: all
// lower case, of three to eight letters.
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

// mixed: letters of both cases and digits, as chance makes them, and no example.
func mixed(word string) bool {
	lower := strings.ToLower(word)
	for _, w := range [...]string{"example", "xxxx", "your", "placeholder", "changeme", "dummy", "redacted", "://", "${", "process.env", "getenv"} {
		if strings.Contains(lower, w) {
			return false
		}
	}
	return strings.ContainsAny(word, "0123456789") && lower != word && strings.ToUpper(word) != word
}

// setting is a member that opens something to everybody or takes a guard away.
type setting struct {
	about  string // a group of words, one of which the tool's name must have
	unless string // with this one nothing that was there before changes
	holds  func(args *tree.Node) bool
	what   act.Sight
}

// settings are the changes of repositories, stores and networks that a tool makes
// by a member of its arguments.
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

// changesSettings raises what the members of a writing tool change for everybody.
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

// overridesRules: a merge that does not wait for what protects the branch.
func overridesRules(args *tree.Node) bool {
	return someMember(args, false, func(key string, k *tree.Node) bool {
		return k.Kind == 't' && (key == "admin" || strings.HasPrefix(key, "bypass") || strings.HasPrefix(key, "skip") || key == "force")
	})
}

// dropsProtection: reviews, checks or rules for administrators are switched off.
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

// addsWriteKey: a key that may write to a repository.
func addsWriteKey(args *tree.Node) bool {
	only := args.Get("read_only", "readOnly")
	return only != nil && only.Kind == 'f'
}

// opensNetwork: to every address, but for the ports that the web is served on.
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

// subjectKeys say to whom a right is given.
var subjectKeys = scan.SetOf("user username userid userids useremail email emails member members memberid principal principalid principalname principalarn collaborator login assignee group groupid team account accountid subject subjects serviceaccount identity grantee invitee usernames")

// rightKeys name a right, a role, or a group that has it.
var rightKeys = scan.SetOf("role roles rolename roletype roleid permission permissions permissionlevel accesslevel access level privilege privileges group groups groupname grouptype policy policyarn scope usertype usergroup membershiprole rights authority accessrole orgrole roleslug")

func isRight(key string) bool {
	return rightKeys.Has(key) || strings.HasSuffix(key, "role") || strings.HasSuffix(key, "roles")
}

// masters are roles and groups whose members may do everything.
var masters = scan.SetOf(`admin admins owner owners maintainer administrator administrators superadmin superuser sysadmin systemadmin systemadministrator globaladmin globaladministrator companyadministrator orgadmin organizationadmin
 orgowner organizationowner workspaceowner workspaceadmin accountadmin accountowner securityadmin privilegedroleadministrator primaryowner root domainadmins enterpriseadmins schemaadmins wheel sudo clusteradmin rolesowner roleseditor superadministrator tenantadmin fullaccess fullcontrol
 administratoraccess poweruseraccess iamfullaccess adminfullaccess dbowner useraccessadministrator rootadmin instanceadmin siteadmin serveradmin projectowner systemmasters realmadmin globaladministrators superusers dbadmin dbaadmin`)

// cloudMasters are such roles of clouds, for every receiver; adminFlags are members
// that make their subject one who has them.
var (
	cloudMasters = scan.SetOf("roles/owner roles/editor cluster-admin")
	adminFlags   = scan.SetOf("isadmin issuperuser superuser issuperadmin siteadmin admin")
)

// masterName is a role's name without signs: SUPER_ADMIN, "Domain Admins", roles/owner.
func masterName(text string) string {
	if i := strings.LastIndex(text, ":policy/"); i >= 0 {
		text = text[i+len(":policy/"):]
	}
	text = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", "/", "", ":", "", ".", "").Replace(text))
	if one := strings.TrimSuffix(text, "s"); masters.Has(one) { // Super Admins
		return one
	}
	return text
}

// givesAdmin: an account may do everything from then on.
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

// givesRight: a member says that an account administers everything.
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

// promotes: the tool's own name says that it gives an account all rights.
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

// pageData: what a page keeps for its user is sent to an address that the text names.
func pageData(e *interp.Env, src *act.Source) {
	holds := func(list ...string) bool {
		return scan.HasAny(src.Text, list...)
	}
	if holds("document.cookie", "localStorage", "sessionStorage", "indexedDB", ".cookies(", "storageState(", "cookieStore", "type=password", "input[type=\"password") &&
		holds("fetch(", "sendBeacon(", "XMLHttpRequest", "WebSocket(", ".src", "location", "axios", "importScripts(") && namesForeignHost(src.Text) {
		e.See(act.SendsSecret, src, 0, len(src.Text), "")
	}
}

// namesForeignHost: an address of another machine is in the text.
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
