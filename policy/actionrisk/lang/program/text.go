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
	case "const", "await":
		return "node"
	case "let", "var":
		if strings.HasPrefix(after, "=") && !strings.Contains(second, "=") {
			return "node"
		}
	case "import":
		switch {
		case second == "{" || second == "*" || strings.Contains(after, " from '") || strings.Contains(after, ` from "`) || strings.HasPrefix(after, "from "):
			return "node"
		case act.SyntaxName(strings.TrimRight(strings.ReplaceAll(scan.FirstLine(second), ".", "_"), ",;")) && strings.ContainsAny(rest, "\n;"):
			return "python"
		}
	case "from":
		if strings.HasPrefix(after, "import ") {
			return "python"
		}
	case "async", "(async":
		return "node"
	}
	return ""
}

// consoleLine: User.objects.all().delete(), prisma.user.deleteMany(), $db->exec("…"):
// names joined by points or arrows up to a bracket, as consoles of applications take.
func consoleLine(text string) string {
	lang, i := "python", 0
	if strings.HasPrefix(text, "$") {
		lang, i = "php", 1
	}
	start, joined := i, false
	for i < len(text) {
		switch {
		case scan.IsNameByte(text[i]) || text[i] == '$':
			i++
		case text[i] == '.' && i > start && lang == "python":
			joined = true
			i++
		case strings.HasPrefix(text[i:], "->") && lang == "php", strings.HasPrefix(text[i:], "::"):
			if joined = true; text[i] == ':' {
				lang = "php"
			}
			i += 2
		case text[i] == '(' && joined && !strings.HasPrefix(strings.TrimLeft(text[i:], "() "), "{"):
			return lang
		default:
			return ""
		}
	}
	if last := text[strings.LastIndexByte(text, '.')+1:]; joined && (last == "delete_all" || last == "destroy_all" || last == "truncate") {
		return "ruby" // which needs no brackets
	}
	return ""
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

// ReadOnly judges a text whose language somebody names: "only python".
func ReadOnly(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runInline(sh.Env, sh, src, strings.TrimPrefix(lang, "only "))
	return act.Flow{}
}

// ReadWhole judges a text that is a program by itself: "whole python".
func ReadWhole(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runProgramText(sh.Env, src, strings.TrimPrefix(lang, "whole "))
	return act.Flow{}
}
