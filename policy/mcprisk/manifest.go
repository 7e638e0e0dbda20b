package mcprisk

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy"
)

// manifest is what the rules know of the free-form object.
type manifest struct {
	raw    map[string]any
	name   string
	tools  []tool
	texts  []text // every string, member names of schemas included
	paths  int    // octets of their places
	cut    bool   // there were too many
	config []text // of those, command, args, env, headers, URL, package, auth
}

// tool is one entry of tools.
type tool struct {
	raw         map[string]any
	name        string
	description string // title, then description
	path        string
	nameParts   []string // the words of the name: "send_email", "sendEmail"
	clean       string   // the description, cleaned
}

// text is one string and where it stands.
type text struct {
	path, tool, member, raw string
}

// parse checks the outer shape and lists every string.
func parse(raw map[string]any) (*manifest, error) {
	m := &manifest{raw: raw, name: stringOf(raw["name"])}
	list, isList := raw["tools"].([]any)
	switch {
	case raw["tools"] != nil && !isList:
		return nil, policy.Refuse("wrong_type", "/manifest/tools", "manifest.tools has the wrong type")
	case len(list) > maxTools:
		return nil, policy.Refuse("too_many_items", "/manifest/tools", "manifest.tools has too many items")
	case len(list) == 0 && stringOf(raw["command"]) == "" && stringOf(serverURL(raw)) == "":
		return nil, policy.Refuse("empty_manifest", "/manifest", "manifest has neither tools nor a command or serverUrl")
	}
	for i, item := range list {
		path := "/tools/" + strconv.Itoa(i)
		object, ok := item.(map[string]any)
		if !ok {
			return nil, policy.Refuse("wrong_type", "/manifest"+path, "manifest.tools has an item that is not an object")
		}
		name, ok := object["name"].(string)
		switch {
		case object["name"] == nil:
			return nil, policy.Refuse("missing_field", "/manifest"+path+"/name", "a tool of the manifest has no name")
		case !ok:
			return nil, policy.Refuse("wrong_type", "/manifest"+path+"/name", "the name of a tool has the wrong type")
		}
		m.tools = append(m.tools, newTool(object, name, path))
	}
	for _, member := range sortedNames(raw) {
		if member != "tools" {
			m.collect("/"+escaped(member), "", member, raw[member], isConfig(member))
		}
	}
	for _, t := range m.tools {
		m.collect(t.path, t.name, "", t.raw, false)
	}
	return m, nil
}

func newTool(object map[string]any, name, path string) tool {
	t := tool{raw: object, name: name, path: path}
	t.description = strings.TrimSpace(stringOf(object["title"]) + ". " + stringOf(object["description"]))
	t.description = strings.TrimPrefix(t.description, ". ")
	t.clean = readings(t.description)[0]
	t.nameParts = nameParts(name)
	return t
}

// says whether a word stands in the description. Looking for each of a few dozen
// words is cheaper than taking the description apart.
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
func serverURL(raw map[string]any) any {
	if raw["serverUrl"] != nil {
		return raw["serverUrl"]
	}
	return raw["url"]
}

func stringOf(v any) string {
	s, _ := v.(string)
	return s
}

func isConfig(member string) bool {
	return slices.Contains([]string{"command", "args", "env", "headers", "serverUrl", "url", "package", "auth", "transport"}, member)
}

// pointer escapes a member name for a JSON pointer. It is made once: a Replacer
// is dear to build.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func escaped(name string) string { return pointer.Replace(name) }

// collect lists the strings of a value, in the order of member names. A long name
// stands in the place of everything below it: there is room for so many octets of
// places, and beyond it none is made.
func (m *manifest) collect(path, tool, member string, value any, config bool) {
	switch v := value.(type) {
	case string:
		m.add(text{path, tool, member, v}, config)
	case []any:
		for i, item := range v {
			if !m.room(len(path)) {
				return
			}
			m.collect(path+"/"+strconv.Itoa(i), tool, member, item, config)
		}
	case map[string]any:
		for _, name := range sortedNames(v) {
			if !m.room(len(path) + len(name)) {
				return
			}
			at := path + "/" + escaped(name)
			m.add(text{at, tool, "", name}, config)
			m.collect(at, tool, name, v[name], config)
		}
	}
}

// room takes room for one more place of so many octets, and says whether there is any.
func (m *manifest) room(octets int) bool {
	m.paths += octets + 1
	m.cut = m.cut || m.paths > maxPaths
	return !m.cut
}

// sortedNames are the names of an object's members. Most objects are small and there
// may be many: a list of the right length is all that is made.
func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

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
