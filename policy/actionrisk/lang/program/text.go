package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// An action may be a program text itself, which no shell would take: a script with
// its imports, a line for an application's console.

// programBegins are beginnings of texts by their language.
var programBegins = []struct{ prefix, holds, lang string }{
	{"from ", " import ", "python"}, {"import ", "(", "python"}, {"#!/usr/bin/env python", "(", "python"}, {"#!/usr/bin/python", "(", "python"},
	{"const ", "=", "node"}, {"let ", "=", "node"}, {"await ", "(", "node"}, {"import {", " from ", "node"}, {"(async", "=>", "node"}, {"async function", "{", "node"}, {"#!/usr/bin/env node", "(", "node"}, {"require(", ")", "node"},
	{"require '", "'", "ruby"}, {"require \"", "\"", "ruby"}, {"#!/usr/bin/env ruby", "\n", "ruby"}, {"ActiveRecord::", ".", "ruby"},
	{"<?php", ";", "php"}, {"<?=", ";", "php"}, {"use strict;", ";", "perl"}, {"use DBI;", ";", "perl"}, {"#!/usr/bin/perl", ";", "perl"}, {"#!/usr/bin/env perl", ";", "perl"},
}

// programLanguage is the language of a text that begins like a program, or ""; sure
// means that no shell would take it.
func programLanguage(text string) (lang string, sure bool) {
	if lang := statementLanguage(text); lang != "" {
		return lang, true
	}
	for _, p := range programBegins {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok && strings.Contains(rest, p.holds) && strings.Contains(rest, "(") {
			if p.lang == "python" && (strings.Contains(rest, " from '") || strings.Contains(rest, " from \"")) {
				return "node", false // import x from 'y'
			}
			return p.lang, false
		}
	}
	return consoleLine(text), false
}

// statementLanguage is the language of a text whose first words begin a statement of
// it and no command: "const x =", "await f(", "from x import y".
func statementLanguage(text string) string {
	first, rest, ok := strings.Cut(text, " ")
	if !ok || !strings.Contains(rest, "(") {
		return ""
	}
	second, after, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	switch first {
	case "const", "await", "async", "(async":
		return "node"
	case "let", "var":
		if strings.HasPrefix(after, "=") && !strings.Contains(second, "=") {
			return "node"
		}
	case "import":
		return importLanguage(second, after, rest)
	case "from":
		if strings.HasPrefix(after, "import ") {
			return "python"
		}
	}
	return ""
}

// importLanguage is the language of "import rest", whose first word is second.
func importLanguage(second, after, rest string) string {
	switch {
	case second == "{" || second == "*" || scan.HasAny(after, " from '", ` from "`) || strings.HasPrefix(after, "from "):
		return "node"
	case act.SyntaxName(strings.TrimRight(strings.ReplaceAll(scan.FirstLine(second), ".", "_"), ",;")) && strings.ContainsAny(rest, "\n;"):
		return "python"
	}
	return ""
}

// consoleLine: User.objects.all().delete(), prisma.user.deleteMany(), $db->exec("…"):
// names joined by points or arrows up to a bracket, as consoles of applications take.
func consoleLine(text string) string {
	lang, start := "python", 0
	if strings.HasPrefix(text, "$") {
		lang, start = "php", 1
	}
	joined := false
	for i := start; i < len(text); {
		n, other := joins(text[i:], lang)
		switch {
		case scan.IsNameByte(text[i]) || text[i] == '$':
			i++
		case n > 0 && (n > 1 || i > start):
			lang, joined, i = other, true, i+n
		case text[i] == '(' && joined && !strings.HasPrefix(strings.TrimLeft(text[i:], "() "), "{"):
			return lang
		default:
			return ""
		}
	}
	switch last := text[strings.LastIndexByte(text, '.')+1:]; last {
	case "delete_all", "destroy_all", "truncate": // of Ruby, which needs no brackets
		if joined {
			return "ruby"
		}
	}
	return ""
}

// joins is how long a sign is between two names that a text begins with, 0 if there is
// none, and the language that then is meant.
func joins(text, lang string) (int, string) {
	switch {
	case text[0] == '.' && lang == "python":
		return 1, lang
	case strings.HasPrefix(text, "->") && lang == "php", strings.HasPrefix(text, "::"):
		return 2, "php"
	}
	return 0, lang
}

// Sniff judges a text that begins like a program. It tells whether there was one,
// and whether it is surely one; else a shell's reading of it is taken as well.
func Sniff(e *interp.Env, src *act.Source) (ran, sure bool) {
	text := strings.TrimLeft(src.Text, " \t\r\n")
	if strings.Contains(text, "redis.call(") || strings.Contains(text, "redis.pcall(") {
		e.Redis(src, "EVAL "+strings.ReplaceAll(text, "\n", " "), "")
		return true, false
	}
	lang, sure := programLanguage(text)
	if lang == "" || src.Depth >= scan.MaxDepth || !e.Budget.Spend(1+len(text)/8) {
		return false, false
	}
	runProgramText(e, src, lang)
	if lang == "python" && consoleLine(text) != "" { // or a line of JavaScript
		runInline(e, &interp.Process{Env: e, Src: src}, src, "node")
	}
	return true, sure
}

// runProgramText judges a text that is a program by itself.
func runProgramText(e *interp.Env, src *act.Source, lang string) {
	e.Ran = true
	runInline(e, &interp.Process{Env: e, Src: src}, src, lang)
	if !strings.HasPrefix(src.Text, "await expect(") { // a test's assertion
		e.Read("calls", src, nil)
	}
	e.Read("orm", src, nil)
}

// Read judges a text that a program hands to the interpreter of a language.
func Read(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runInline(sh.Env, sh, src, lang)
	return act.Flow{}
}

// ReadOnly judges a text whose language is stated: "only python".
func ReadOnly(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runInline(sh.Env, sh, src, strings.TrimPrefix(lang, "only "))
	return act.Flow{}
}

// ReadWhole judges a text that is a program by itself: "whole python".
func ReadWhole(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runProgramText(sh.Env, src, strings.TrimPrefix(lang, "whole "))
	return act.Flow{}
}
