package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// An action may be a program text itself, not a shell command: a script with its imports, or a
// line for the console of an application. This file recognizes such actions.

// programBegins lists how program texts begin. A text is in a language if it starts with the
// prefix of a row and contains the second string of the row after the prefix.
var programBegins = []struct{ prefix, holds, lang string }{
	{"from ", " import ", "python"}, {"import ", "(", "python"}, {"#!/usr/bin/env python", "(", "python"}, {"#!/usr/bin/python", "(", "python"},
	{"const ", "=", "node"}, {"let ", "=", "node"}, {"await ", "(", "node"}, {"import {", " from ", "node"}, {"(async", "=>", "node"}, {"async function", "{", "node"}, {"#!/usr/bin/env node", "(", "node"}, {"require(", ")", "node"},
	{"require '", "'", "ruby"}, {"require \"", "\"", "ruby"}, {"#!/usr/bin/env ruby", "\n", "ruby"}, {"ActiveRecord::", ".", "ruby"},
	{"<?php", ";", "php"}, {"<?=", ";", "php"}, {"use strict;", ";", "perl"}, {"use DBI;", ";", "perl"}, {"#!/usr/bin/perl", ";", "perl"}, {"#!/usr/bin/env perl", ";", "perl"},
}

// programLanguage returns the language of a text that looks like a program text, or "". sure means
// that the text cannot be a shell command.
func programLanguage(text string) (lang string, sure bool) {
	if lang := statementLanguage(text); lang != "" {
		return lang, true
	}
	for _, p := range programBegins {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok && strings.Contains(rest, p.holds) && strings.Contains(rest, "(") {
			if p.lang == "python" && (strings.Contains(rest, " from '") || strings.Contains(rest, " from \"")) {
				return "node", false // for example import x from 'y'
			}
			return p.lang, false
		}
	}
	return consoleLine(text), false
}

// statementLanguage returns the language of a text whose first words begin a statement and cannot
// begin a shell command: "const x =", "await f(", "from x import y". It returns "" for other
// texts.
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

// importLanguage returns the language of the statement "import rest", or "". second is the first
// word of rest, and after is the text after it.
func importLanguage(second, after, rest string) string {
	switch {
	case second == "{" || second == "*" || scan.HasAny(after, " from '", ` from "`) || strings.HasPrefix(after, "from "):
		return "node"
	case act.SyntaxName(strings.TrimRight(strings.ReplaceAll(scan.FirstLine(second), ".", "_"), ",;")) && strings.ContainsAny(rest, "\n;"):
		return "python"
	}
	return ""
}

// consoleLine returns the language of a line for the console of an application: names joined by
// dots or arrows, up to a bracket, as in User.objects.all().delete(), prisma.user.deleteMany() and
// $db->exec("…"). It returns "" for other texts.
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
	case "delete_all", "destroy_all", "truncate": // methods of Ruby, which need no brackets
		if joined {
			return "ruby"
		}
	}
	return ""
}

// joins returns the length of the sign between two names at the start of a text, or 0, and the
// language that uses this sign.
func joins(text, lang string) (int, string) {
	switch {
	case text[0] == '.' && lang == "python":
		return 1, lang
	case strings.HasPrefix(text, "->") && lang == "php", strings.HasPrefix(text, "::"):
		return 2, "php"
	}
	return 0, lang
}

// Sniff judges a text that looks like a program text, and reports whether it is one. If sure is
// false, the text may also be a shell command, and the caller judges it as one, too.
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
	if lang == "python" && consoleLine(text) != "" { // the line may also be JavaScript
		runInline(e, &interp.Process{Env: e, Src: src}, src, "node")
	}
	return true, sure
}

// runProgramText judges a text that is itself a program.
func runProgramText(e *interp.Env, src *act.Source, lang string) {
	e.Ran = true
	runInline(e, &interp.Process{Env: e, Src: src}, src, lang)
	if !strings.HasPrefix(src.Text, "await expect(") { // the text is an assertion of a test
		e.Read("calls", src, nil)
	}
	e.Read("orm", src, nil)
}

// Read judges a text that a command passes to the interpreter of a language.
func Read(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runInline(sh.Env, sh, src, lang)
	return act.Flow{}
}

// ReadOnly judges a program text whose language is stated: lang is "only python" for Python.
func ReadOnly(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runInline(sh.Env, sh, src, strings.TrimPrefix(lang, "only "))
	return act.Flow{}
}

// ReadWhole judges a text that is itself a program: lang is "whole python" for Python.
func ReadWhole(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	runProgramText(sh.Env, src, strings.TrimPrefix(lang, "whole "))
	return act.Flow{}
}
