package site

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Text returns a text for language models with the facts filled in: "llms.txt", "llms-prompts.txt"
// or "auth.md".
func (s *Site) Text(name string) (string, error) {
	text, err := files.ReadFile("content/" + name)
	if err != nil {
		return "", err
	}
	return s.execute(string(text), subject{Facts: s.Facts, Site: s})
}

// Full returns llms.txt followed by every page about the service itself. It contains only links to
// the pages of single rules and errors.
func (s *Site) Full() (string, error) {
	text, err := s.Text("llms.txt")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(text)
	for _, p := range s.Pages {
		if p.Type == "rules" && p.Path != "/rules" || p.Type == "errors" && p.Path != "/errors" {
			continue
		}
		fmt.Fprintf(&out, "\n%s", indented(p.Markdown))
	}
	return out.String(), nil
}

// aiCrawlers have their own groups in robots.txt, because their operators ask for it. Such a group
// replaces the group for all crawlers, so it must repeat all lines.
var aiCrawlers = []string{"GPTBot", "ClaudeBot", "OAI-SearchBot", "PerplexityBot", "Google-Extended", "CCBot"}

// ContentSignal is the policy for the use of the content by crawlers.
const ContentSignal = "ai-train=no, search=yes, ai-input=yes"

// Robots returns robots.txt.
func (s *Site) Robots() string {
	rules := "Content-Signal: " + ContentSignal + "\nAllow: /\nDisallow: /api/downloads/\nDisallow: /api/webhooks/\nDisallow: /account\n\n"
	var out strings.Builder
	out.WriteString("User-agent: *\n" + rules)
	for _, name := range aiCrawlers {
		out.WriteString("User-agent: " + name + "\n")
	}
	out.WriteString(rules + "Sitemap: " + s.Facts.Base + "/sitemap.xml\n")
	return out.String()
}

// Sitemap returns sitemap.xml: every page with the day of its last change.
func (s *Site) Sitemap() ([]byte, error) {
	type entry struct {
		Address  string `xml:"loc"`
		Modified string `xml:"lastmod"`
	}
	set := struct {
		XMLName xml.Name `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 urlset"`
		Entries []entry  `xml:"url"`
	}{}
	for _, p := range s.Pages {
		set.Entries = append(set.Entries, entry{s.Facts.Base + p.Path, p.Updated.Format(dateForm)})
	}
	body, err := xml.MarshalIndent(set, "", " ")
	return append([]byte(xml.Header), append(body, '\n')...), err
}

// securityTerm is the validity of security.txt. RFC 9116 recommends less than a year.
const securityTerm = 180 * 24 * time.Hour

// Security returns security.txt as of a day.
func (s *Site) Security(now time.Time) string {
	day := now.UTC().Truncate(24 * time.Hour)
	return fmt.Sprintf("Contact: mailto:%s\nExpires: %s\nPreferred-Languages: en\nCanonical: %s/.well-known/security.txt\nPolicy: %[3]s/docs/security\n",
		s.Facts.Contact, day.Add(securityTerm).Format(time.RFC3339), s.Facts.Base)
}

// Skill is a file with instructions for an agent (agentskills.io).
type Skill struct {
	Name, Description string
	Body              []byte // content of SKILL.md
	Digest            string // "sha256:" and the hex hash of Body
}

// Skills returns the files of content/skills, sorted by name.
func (s *Site) Skills() (list []Skill, err error) {
	names, err := fs.Glob(files, "content/skills/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		head, body, err := cutHead(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		skill := Skill{Name: strings.TrimSuffix(path.Base(name), ".md")}
		for line := range strings.Lines(head) {
			member, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch {
			case member == "name" && value != skill.Name:
				return nil, fmt.Errorf("%s: the name in the file differs from the file's name", name)
			case member == "description":
				skill.Description = value
			}
		}
		if body, err = s.execute(body, subject{Facts: s.Facts, Site: s}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		skill.Body = bytes.Join([][]byte{[]byte("---\n" + head + "\n---\n"), []byte(body)}, []byte("\n"))
		sum := sha256.Sum256(skill.Body)
		skill.Digest = "sha256:" + hex.EncodeToString(sum[:])
		list = append(list, skill)
	}
	return list, nil
}
