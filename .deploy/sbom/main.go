// Command sbom prints the bill of materials of a Go binary as CycloneDX 1.5 JSON:
// every module that is in it, as the linker wrote it down, with its checksum. It
// reads the file that is shipped, not the sources that may have made it.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// document is a CycloneDX 1.5 bill of materials, of which this needs a part.
// https://cyclonedx.org/docs/1.5/json/
type document struct {
	BOMFormat   string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(2)
	}
}

func write(path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the build information: %w", err)
	}
	program := component{Type: "application", Name: filepath.Base(path), PURL: purl(info.Main.Path, info.Main.Version)}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	d := document{BOMFormat: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: metadata{program},
		Components: []component{{Type: "library", Name: "std", Version: info.GoVersion, PURL: purl("std", strings.TrimPrefix(info.GoVersion, "go"))}}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version), Hashes: sum(m.Sum)})
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// sum is the module's checksum of go.sum ("h1:" and the base64 of a SHA-256) as
// CycloneDX writes one.
func sum(h1 string) []hash {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h1, "h1:"))
	if err != nil || len(raw) != 32 {
		return nil
	}
	return []hash{{"SHA-256", hex.EncodeToString(raw)}}
}
