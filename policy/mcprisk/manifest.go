package mcprisk

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/mcprisk/acts"
)

// A manifest is read from its canonical text. If a rule needs a certain member, the object around
// it is split into its members; everything else is read once, in one pass. A tree of all values
// would cost more than all rules together.

// members contains the members of an object that are not null, by name.
type members map[string]jsontext.Value

// membersOf returns the members of an object, or nil for any other value.
func membersOf(canonical jsontext.Value) members {
	if !isObject(canonical) {
		return nil
	}
	found, _ := canon.Members(canonical) // no error, because the text is canonical
	for name, value := range found {
		if value.Kind() == 'n' {
			delete(found, name)
		}
	}
	return found
}

func isObject(value jsontext.Value) bool { return value.Kind() == '{' }

// manifest contains the parts of a manifest that the rules read.
type manifest struct {
	at         string // pointer of raw in the request's manifest: "/result" for a JSON-RPC answer, otherwise ""
	raw        members
	servers    []server
	configured string // name of the member that contains the servers of a client configuration
	name       string
	tools      []tool
	texts      []text // every string outside config, including member names
	paths      int    // total bytes of the pointers so far
	cut        bool   // true if paths reached its limit and strings were skipped
	config     []text // every string in command, args, env, headers, URL, package and auth
}

// server describes how one server is started or reached. It is the manifest itself, or an entry of
// a client configuration.
type server struct {
	at  string
	raw members
}

// startable reports whether the server has a command, a URL or a package.
func (s server) startable() bool {
	return stringOf(s.raw["command"]) != "" || stringOf(serverURL(s.raw)) != "" || len(listOf(s.raw["packages"]))+len(listOf(s.raw["remotes"])) > 0
}

// tool is one item of tools.
type tool struct {
	text        jsontext.Value
	raw         members
	name        string
	description string // title and description
	path        string
	found       uint8    // bits of the capabilities that were already reported
	nameParts   []string // words of the name: send and email for "send_email" or "sendEmail"
	clean       string   // description in normal form, see readings
}

// text is one string of the manifest, with its pointer, its tool and its member.
type text struct {
	path, tool, member, raw string
	owner                   *tool // the tool that contains the text; nil if none does
	summary                 bool  // the text is the title or description of the tool
}

// parse checks the types of the outer members and collects every string.
func parse(canonical jsontext.Value) (*manifest, error) {
	switch canonical.Kind() {
	case '{':
	case 'n':
		return nil, policy.Refuse("missing_field", "/manifest", "manifest is required")
	default:
		return nil, policy.Refuse("wrong_type", "/manifest", "manifest must be an object")
	}
	m := &manifest{raw: membersOf(canonical)}
	if result := membersOf(m.raw["result"]); m.raw["jsonrpc"] != nil && result["tools"] != nil {
		m.at, m.raw = "/result", result
	}
	m.name = stringOf(m.raw["name"])
	if err := m.readTools(); err != nil {
		return nil, err
	}
	if err := m.readServers(); err != nil {
		return nil, err
	}
	if len(m.tools) == 0 && !slices.ContainsFunc(m.servers, server.startable) {
		return nil, policy.Refuse("empty_manifest", "/manifest", "manifest must have tools, or a server with a command, a url, packages or remotes")
	}
	for i, s := range m.servers {
		for _, member := range sortedNames(s.raw) {
			if i > 0 || member != "tools" && !(member == m.configured && len(m.servers) > 1) {
				m.collect(s.at+"/"+escaped(member), "", member, canon.NewReader(s.raw[member]), isConfig(member))
			}
		}
	}
	for i := range m.tools {
		t := &m.tools[i]
		from := len(m.texts)
		m.collect(t.path, t.name, "", canon.NewReader(t.text), false)
		for j := range m.texts[from:] {
			at := &m.texts[from+j]
			at.owner, at.summary = t, at.member != "" && (at.path == t.path+"/description" || at.path == t.path+"/title")
		}
	}
	return m, nil
}

// readTools checks the type and the name of each tool.
func (m *manifest) readTools() error {
	list := m.raw["tools"]
	switch {
	case list == nil:
		return nil
	case list.Kind() != '[':
		return policy.Refuse("wrong_type", "/manifest"+m.at+"/tools", "manifest.tools must be a list")
	}
	var items []jsontext.Value
	for in := enter(list); in.More(); {
		if items = append(items, in.Raw()); len(items) > maxTools {
			return policy.Refuse("too_many_items", "/manifest"+m.at+"/tools", "manifest.tools must have at most "+strconv.Itoa(maxTools)+" items")
		}
	}
	for i, item := range items {
		path := m.at + "/tools/" + strconv.Itoa(i)
		if !isObject(item) {
			return policy.Refuse("wrong_type", "/manifest"+path, "each item of manifest.tools must be an object")
		}
		object := membersOf(item)
		switch name := object["name"]; {
		case name == nil:
			return policy.Refuse("missing_field", "/manifest"+path+"/name", "each tool of the manifest must have a name")
		case name.Kind() != '"':
			return policy.Refuse("wrong_type", "/manifest"+path+"/name", "the name of each tool must be a string")
		}
		m.tools = append(m.tools, newTool(item, object, path))
	}
	return nil
}

// readServers collects the servers: the manifest itself, and the entries of a client configuration
// ("mcpServers" in most clients, "servers" in VS Code).
func (m *manifest) readServers() error {
	m.servers = []server{{m.at, m.raw}}
	for _, member := range []string{"mcpServers", "servers"} {
		list := m.raw[member]
		if list == nil || member == "servers" && (!isObject(list) || m.raw["mcpServers"] != nil) {
			continue
		}
		if !isObject(list) {
			return policy.Refuse("wrong_type", "/manifest"+m.at+"/"+member, "manifest."+member+" must be an object")
		}
		entries := membersOf(list)
		if len(entries) > maxServers {
			return policy.Refuse("too_many_items", "/manifest"+m.at+"/"+member, "manifest."+member+" must have at most "+strconv.Itoa(maxServers)+" entries")
		}
		m.configured = member
		for _, name := range sortedNames(entries) {
			if !isObject(entries[name]) {
				return policy.Refuse("wrong_type", "/manifest"+m.at+"/"+member, "manifest."+member+" must have only objects as entries")
			}
			m.servers = append(m.servers, server{m.at + "/" + member + "/" + escaped(name), membersOf(entries[name])})
		}
	}
	return nil
}

// enter returns a reader at the first member of an object or the first item of a list.
func enter(value jsontext.Value) *canon.Reader {
	in := canon.NewReader(value)
	in.Enter()
	return in
}

func newTool(text jsontext.Value, object members, path string) tool {
	t := tool{text: text, raw: object, name: stringOf(object["name"]), path: path}
	t.description = strings.TrimSpace(stringOf(object["title"]) + ". " + stringOf(object["description"]))
	t.description = strings.TrimPrefix(t.description, ". ")
	t.clean = readings(t.description)[0]
	t.nameParts = nameParts(t.name)
	return t
}

// subject returns what the tool deals with, by its name and description.
func (t *tool) subject() acts.Subject {
	if t == nil {
		return 0
	}
	words := slices.Clone(t.nameParts)
	eachWord(t.clean, func(word string) { words = append(words, word) })
	return acts.About(words)
}

// takes reports whether the tool has a parameter with this name.
func (t *tool) takes(name string) bool {
	return t != nil && membersOf(membersOf(t.raw["inputSchema"])["properties"])[name] != nil
}

// says reports whether the description contains a word. Searching for a few dozen words is cheaper
// than splitting the description into words.
func (t *tool) says(word string) bool {
	for from := 0; ; {
		at := strings.Index(t.clean[from:], word)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(word)
		if (at == 0 || !isWordByte(t.clean[at-1])) && (end == len(t.clean) || !isWordByte(t.clean[end])) {
			return true
		}
		from = end
	}
}

// serverURL returns the URL of a remote server: the member serverUrl, or url as in client
// configurations.
func serverURL(raw members) jsontext.Value {
	if raw["serverUrl"] != nil {
		return raw["serverUrl"]
	}
	return raw["url"]
}

// stringOf returns a string value, or "" for any other value.
func stringOf(value jsontext.Value) string {
	if value.Kind() != '"' {
		return ""
	}
	return string(canon.NewReader(value).Text())
}

func isConfig(member string) bool {
	return slices.Contains([]string{"command", "args", "env", "headers", "serverUrl", "url", "package", "auth", "transport", "packages", "remotes"}, member)
}

// pointer escapes a member name for a JSON pointer. It is a variable because building a Replacer
// is expensive.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func escaped(name string) string { return pointer.Replace(name) }

// collect adds the strings of the next value, in the order of the canonical text. A long member
// name is part of the pointers of all values below it, so the total size of the pointers is
// limited. When the limit is reached, collect stops.
func (m *manifest) collect(path, tool, member string, in *canon.Reader, config bool) {
	switch in.Kind() {
	case '"':
		m.add(text{path: path, tool: tool, member: member, raw: string(in.Text())}, config)
	case '[':
		in.Enter()
		for i := 0; in.More(); i++ {
			if !m.room(len(path)) {
				return
			}
			if scalar := in.Kind(); scalar != '"' && scalar != '[' && scalar != '{' {
				in.Skip()
				continue
			}
			if m.collect(path+"/"+strconv.Itoa(i), tool, member, in, config); m.cut {
				return
			}
		}
	case '{':
		called := ""
		for in.Enter(); in.More(); {
			name := string(in.Name())
			if !m.room(len(path) + len(name)) {
				return
			}
			at := path + "/" + escaped(name)
			m.add(text{path: at, tool: tool, raw: name}, config)
			from := len(m.config)
			if m.collect(at, tool, name, in, config); m.cut {
				return
			}
			// A registry entry has variables as {"name": …, "value": …}: the value belongs to
			// that name.
			if config && len(m.config) == from+1 {
				switch value := &m.config[from]; name {
				case "name":
					called = value.raw
				case "value":
					value.member = cmp.Or(called, name)
				}
			}
		}
	default:
		in.Skip()
	}
}

// room counts one more pointer of size bytes. It returns false if the limit is reached.
func (m *manifest) room(size int) bool {
	m.paths += size + 1
	m.cut = m.cut || m.paths > maxPaths
	return !m.cut
}

func sortedNames(object members) []string { return slices.Sorted(maps.Keys(object)) }

func (m *manifest) add(t text, config bool) {
	if len(t.raw) > maxScan {
		t.raw = strings.ToValidUTF8(t.raw[:maxScan], "")
	}
	if config {
		m.config = append(m.config, t)
	} else {
		m.texts = append(m.texts, t)
	}
}

// nameParts splits a name at separators and capital letters, and returns its words in lower case.
func nameParts(name string) []string {
	var parts []string
	var part []rune
	flush := func() {
		if len(part) > 0 {
			parts = append(parts, strings.ToLower(string(part)))
			part = part[:0]
		}
	}
	var before rune
	for _, r := range name {
		upper := r >= 'A' && r <= 'Z'
		switch {
		case r == '_' || r == '-' || r == '.' || r == '/' || r == ' ' || r == ':':
			flush()
			before = 0
			continue
		case upper && before != 0 && !(before >= 'A' && before <= 'Z'):
			flush()
		}
		part = append(part, r)
		before = r
	}
	flush()
	return parts
}
