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

// A manifest is read from its canonical text: where a rule knows the member it looks
// at, the object that holds it is taken apart, and the rest is gone through once. A tree
// of all values would cost more than all rules together.

// members are those of an object that are not null, by name.
type members map[string]jsontext.Value

// membersOf takes an object apart; a value of another kind has none.
func membersOf(canonical jsontext.Value) members {
	if !isObject(canonical) {
		return nil
	}
	found, _ := canon.Members(canonical) // of canonical text it cannot fail
	for name, value := range found {
		if value.Kind() == 'n' {
			delete(found, name)
		}
	}
	return found
}

func isObject(value jsontext.Value) bool { return value.Kind() == '{' }

// manifest is what the rules know of the free-form object.
type manifest struct {
	at         string // where raw is in what was sent: "/result" in an answer of JSON-RPC
	raw        members
	servers    []server
	configured string // the member that holds the entries
	name       string
	tools      []tool
	texts      []text // every string, member names of schemas included
	paths      int    // bytes of their pointers
	cut        bool   // there were too many
	config     []text // of those, command, args, env, headers, URL, package, auth
}

// server is how one server is started or reached: the manifest itself, or an entry of a
// client's configuration.
type server struct {
	at  string
	raw members
}

// startable reports whether the server has a command, an address or a package.
func (s server) startable() bool {
	return stringOf(s.raw["command"]) != "" || stringOf(serverURL(s.raw)) != "" || len(listOf(s.raw["packages"]))+len(listOf(s.raw["remotes"])) > 0
}

// tool is one entry of tools.
type tool struct {
	text        jsontext.Value
	raw         members
	name        string
	description string // title, then description
	path        string
	found       uint8    // capabilities reported already
	nameParts   []string // the words of the name: "send_email", "sendEmail"
	clean       string   // the description, cleaned
}

// text is one string and where it stands.
type text struct {
	path, tool, member, raw string
	owner                   *tool // that it belongs to
	summary                 bool  // it is the title or description of the tool
}

// parse checks the outer shape and lists every string.
func parse(canonical jsontext.Value) (*manifest, error) {
	switch canonical.Kind() {
	case '{':
	case 'n':
		return nil, policy.Refuse("missing_field", "/manifest", "manifest is missing")
	default:
		return nil, policy.Refuse("wrong_type", "/manifest", "manifest has the wrong type")
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
		return nil, policy.Refuse("empty_manifest", "/manifest", "manifest has no tools, and no server with a command, a url, packages or remotes")
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

// readTools reads the outer shape of each tool.
func (m *manifest) readTools() error {
	list := m.raw["tools"]
	switch {
	case list == nil:
		return nil
	case list.Kind() != '[':
		return policy.Refuse("wrong_type", "/manifest"+m.at+"/tools", "manifest.tools has the wrong type")
	}
	var items []jsontext.Value
	for in := enter(list); in.More(); {
		if items = append(items, in.Raw()); len(items) > maxTools {
			return policy.Refuse("too_many_items", "/manifest"+m.at+"/tools", "manifest.tools has too many items")
		}
	}
	for i, item := range items {
		path := m.at + "/tools/" + strconv.Itoa(i)
		if !isObject(item) {
			return policy.Refuse("wrong_type", "/manifest"+path, "manifest.tools has an item that is not an object")
		}
		object := membersOf(item)
		switch name := object["name"]; {
		case name == nil:
			return policy.Refuse("missing_field", "/manifest"+path+"/name", "a tool of the manifest has no name")
		case name.Kind() != '"':
			return policy.Refuse("wrong_type", "/manifest"+path+"/name", "the name of a tool has the wrong type")
		}
		m.tools = append(m.tools, newTool(item, object, path))
	}
	return nil
}

// readServers lists the servers: the manifest itself and the entries of a client's
// configuration, "mcpServers" of most clients or "servers" of VS Code.
func (m *manifest) readServers() error {
	m.servers = []server{{m.at, m.raw}}
	for _, member := range []string{"mcpServers", "servers"} {
		list := m.raw[member]
		if list == nil || member == "servers" && (!isObject(list) || m.raw["mcpServers"] != nil) {
			continue
		}
		if !isObject(list) {
			return policy.Refuse("wrong_type", "/manifest"+m.at+"/"+member, "manifest."+member+" is not an object")
		}
		entries := membersOf(list)
		if len(entries) > maxServers {
			return policy.Refuse("too_many_items", "/manifest"+m.at+"/"+member, "manifest."+member+" has more than "+strconv.Itoa(maxServers)+" entries")
		}
		m.configured = member
		for _, name := range sortedNames(entries) {
			if !isObject(entries[name]) {
				return policy.Refuse("wrong_type", "/manifest"+m.at+"/"+member, "manifest."+member+" has an entry that is not an object")
			}
			m.servers = append(m.servers, server{m.at + "/" + member + "/" + escaped(name), membersOf(entries[name])})
		}
	}
	return nil
}

// enter reads the object or list from its first member or item.
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

// subject is what the tool deals with by its name and its description.
func (t *tool) subject() acts.Subject {
	if t == nil {
		return 0
	}
	words := slices.Clone(t.nameParts)
	eachWord(t.clean, func(word string) { words = append(words, word) })
	return acts.About(words)
}

// takes reports whether the tool has a parameter of that name.
func (t *tool) takes(name string) bool {
	return t != nil && membersOf(membersOf(t.raw["inputSchema"])["properties"])[name] != nil
}

// says reports whether the description contains a word. Searching for a few dozen words
// is cheaper than splitting the description.
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

// serverURL is the member that holds a remote server's address: ours, or what
// client configurations call it.
func serverURL(raw members) jsontext.Value {
	if raw["serverUrl"] != nil {
		return raw["serverUrl"]
	}
	return raw["url"]
}

// stringOf is the string that a value is, or none.
func stringOf(value jsontext.Value) string {
	if value.Kind() != '"' {
		return ""
	}
	return string(canon.NewReader(value).Text())
}

func isConfig(member string) bool {
	return slices.Contains([]string{"command", "args", "env", "headers", "serverUrl", "url", "package", "auth", "transport", "packages", "remotes"}, member)
}

// pointer escapes a member name for a JSON pointer. It is built once, because
// building a Replacer is expensive.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func escaped(name string) string { return pointer.Replace(name) }

// collect lists the strings of the next value, in the order of the canonical text. A long
// name is part of the pointer of everything below it, so the total size of the pointers is
// limited; beyond the limit nothing more is read.
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
			// The registry writes variables as {"name": …, "value": …}: the value stands
			// under that name.
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

// room takes space for one more pointer of size bytes, and reports whether there was any.
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

// nameParts splits a name at separators and at capitals, lower case.
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
