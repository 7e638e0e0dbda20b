package sql

import (
	"encoding/hex"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// sqlHole replaces a part of a text that only the server will know.
const sqlHole = "dynamic_name"

// nested judges SQL in a literal of the tokens [i,end). It reports whether the text is SQL that it
// understands, or is too large to read.
func (p *parser) nested(text, via string, i, end int) bool {
	if *p.left -= len(text); p.nesting >= MaxSQLNesting || *p.left < 0 {
		p.out.TooDeep = true
		return true
	}
	end = min(max(end, i+1), len(p.toks))
	inner := classifyNested(text, readings(text, p.read|ANSI), p.of, p.nesting+1, p.left)
	p.out.Steps += inner.Steps + len(text)/8
	p.out.TooDeep = p.out.TooDeep || inner.TooDeep
	start, stop := p.toks[i].Start, p.toks[end-1].End
	for _, f := range inner.Facts {
		f.Start, f.End = start, stop
		if f.Via == "" {
			f.Via = via
		}
		f.Deferred = f.Deferred || p.routine != ""
		p.out.Facts = append(p.out.Facts, f)
	}
	for _, c := range inner.Shell {
		c.Start, c.End = start, stop
		p.out.Shell = append(p.out.Shell, c)
	}
	if !inner.ReadOnly {
		p.out.ReadOnly = false
	}
	return len(inner.Facts) > 0 || !inner.Unknown
}

// literal evaluates a text expression at [lo,hi): literals joined by || or +, and functions that
// only build text. An unknown part becomes sqlHole. known is false if no part is known.
func (p *parser) literal(lo, hi int) (text string, known bool) {
	var b strings.Builder
	for i := lo; i < hi && !p.op(i, ","); {
		p.out.Steps++
		text, next, ok := p.literalAt(i, hi)
		b.WriteString(text)
		known = known || ok
		i = next
	}
	return b.String(), known
}

// literalAt returns the text of the part of an expression at token i, and the index after that
// part.
func (p *parser) literalAt(i, hi int) (text string, next int, known bool) {
	t := p.toks[i]
	if c := p.literalToken(t); c.kind == constText {
		return c.text, i + 1, true
	}
	switch t.kind {
	case sqlNumber:
		if digits, ok := strings.CutPrefix(p.raw(i), "0x"); ok {
			if raw, err := hex.DecodeString(digits); err == nil {
				return string(raw), i + 1, true
			}
		}
	case sqlWord, sqlName, sqlParam:
		if close := p.closes(i+1, hi); t.kind == sqlWord && p.op(i+1, "(") && close > 0 {
			text, known = p.textFunction(p.raw(i), i+2, close)
			return text, close + 1, known
		}
		name, next := p.name(i, hi)
		if text, known = p.variable(name); !known && !p.isAny(i, "as", "text", "using", "into") && !p.op(i-1, "::") {
			text = sqlHole
		}
		return text, max(next, i+1), known
	}
	return "", i + 1, false
}

// textFunction evaluates a function that builds text from its arguments at [lo,hi).
func (p *parser) textFunction(name string, lo, hi int) (string, bool) {
	args := p.list(lo, hi)
	if name == "char" || name == "chr" || name == "nchar" || name == "unistr" {
		return p.characters(args)
	}
	var texts []string
	known := false
	for _, a := range args {
		s, ok := p.literal(a[0], a[1])
		texts = append(texts, strings.ReplaceAll(s, sqlHole, string(scan.Hole)))
		known = known || ok
	}
	text, ok := p.of.Apply("sql", name, texts...)
	if !ok || len(texts) == 0 {
		return sqlHole, false
	}
	return strings.ReplaceAll(text, string(scan.Hole), sqlHole), known
}

// characters returns the text of characters that are given by their code points.
func (p *parser) characters(numbers [][2]int) (string, bool) {
	var b strings.Builder
	for _, a := range numbers {
		c := p.constant(a[0], a[1])
		if c.kind != constNumber || c.number < 1 || c.number > 0x10ffff {
			return sqlHole, false
		}
		b.WriteRune(rune(c.number))
	}
	return b.String(), true
}

// variable returns the text of a variable. Snowflake and Oracle put "$" or ":" before its name
// where they use it.
func (p *parser) variable(name string) (string, bool) {
	name = strings.ToLower(name)
	if s, ok := p.vars[name]; ok {
		return s, true
	}
	s, ok := p.vars[strings.TrimLeft(name, "$:")]
	return s, ok
}

// assign stores the text of a variable or a prepared statement, if it is known and has at most
// 4,096 bytes.
func (p *parser) assign(name string, lo, hi int) {
	if text, known := p.literal(lo, hi); known && len(text) <= 4096 {
		if p.vars == nil {
			p.vars = map[string]string{}
		}
		p.vars[strings.ToLower(name)] = text
	}
}

// set handles SET and DECLARE: it stores variables and judges server settings and passwords.
func (p *parser) set(verb string, i, end int) {
	name := p.raw(i + 1)
	switch {
	case p.is(i+1, "global") || strings.HasPrefix(name, "@@global") || strings.HasPrefix(name, "persist"):
		p.setGlobal(i, end)
	case p.is(i+1, "password"):
		p.add("privilege.password", "", i, end)
	case name == "session_replication_role":
		p.add("server.config", name, i, end)
	default:
		p.setVariables(verb == "declare", i, end)
	}
}

// setGlobal handles SET GLOBAL name, @@global.name and @@persist.name.
func (p *parser) setGlobal(i, end int) {
	at := i + 2
	if strings.HasPrefix(p.raw(i+1), "@@") {
		for at = i + 1; at < end && !p.op(at+1, "=") && !p.op(at+1, ":="); at++ {
		}
	}
	if !p.setting(lastPart(p.raw(at)), p.settingValue(at+1, end), i, end) {
		p.add("server.config", p.raw(i+2), i, end)
	}
}

// setVariables stores the variables that SET and DECLARE assign. In DECLARE the type is between
// the name and the value.
func (p *parser) setVariables(declares bool, i, end int) {
	for j := i + 2; j < end; j++ {
		if !p.op(j, "=") && !p.op(j, ":=") && !(declares && p.is(j, "default")) {
			continue
		}
		name := j - 1
		for declares && name > i+1 && p.toks[name].kind != sqlParam && !p.op(name-1, ",") {
			name--
		}
		p.assign(p.raw(name), j+1, p.commaOr(j+1, end))
	}
}

// commaOr returns the index of the first comma outside parentheses in [lo,hi), or hi.
func (p *parser) commaOr(lo, hi int) int {
	for i := range p.outside(lo, hi) {
		if p.op(i, ",") {
			return i
		}
	}
	return hi
}

// block judges the text of DO $$…$$.
func (p *parser) block(i, end int) {
	for j := i + 1; j < end; j++ {
		if p.toks[j].kind == sqlString {
			p.nested(p.stringAt(j), "do", i, end)
			return
		}
	}
}

// runsText reports, by the beginning of its name, whether a procedure runs its text argument as
// SQL.
func runsText(procedure string) bool {
	return scan.HasAnyPrefix(procedure, "sp_executesql", "sp_prepexec", "sp_msforeach", "sp_sqlexec")
}

// execute handles EXECUTE, EXEC, CALL and PERFORM. They run SQL text that the statement itself
// builds, prepared statements, or procedures that are built into every server.
func (p *parser) execute(verb string, i, end int) {
	j := i + 1
	for p.isAny(j, "immediate") {
		j++
	}
	if j < end && p.toks[j].kind == sqlParam && p.op(j+1, "=") { // for example EXEC @rc = name …
		j += 2
	}
	if j >= end {
		return
	}
	called := p.toks[j].kind == sqlWord || p.toks[j].kind == sqlName && verb != "execute"
	if !called || !p.executesNamed(verb, i, j, end) {
		p.dynamic(j, end, i)
	}
}

// executesNamed handles a call of a named procedure, and reports whether it is one. It returns
// false if the name is a variable that contains SQL text, or the start of an expression that
// builds it.
func (p *parser) executesNamed(verb string, i, j, end int) bool {
	name, next := p.name(j, end)
	procedure := lastPart(strings.ToLower(name))
	if runsText(procedure) {
		p.dynamic(next, end, i)
		return true
	}
	if p.callActs(i, next, end) {
		return true
	}
	if p.procedure(procedure, i, next, end) || verb == "call" {
		p.functions(i, end)
		return true
	}
	builds := p.op(next, "(") && (procedure == "format" || procedure == "concat")
	if _, variable := p.vars[strings.ToLower(name)]; variable || builds || p.op(next, "||") || p.op(next, "+") {
		return false
	}
	if verb != "exec" && p.inText(i) {
		p.add("dynamic", name, i, end)
	}
	p.out.Unknown = true
	return true
}

// inText reports whether EXECUTE at token i runs a text and not a prepared statement.
func (p *parser) inText(i int) bool {
	return p.routine != "" || p.via != "" || p.nesting > 0 || p.is(i+1, "immediate")
}

// dynamic judges the text expression at [lo,hi) as SQL. It adds the effect "dynamic" if the text
// is not known well enough.
func (p *parser) dynamic(lo, hi, i int) {
	if p.op(lo, "(") {
		if close := p.closes(lo, hi); close > 0 {
			lo, hi = lo+1, close
		}
	}
	if p.toks[min(lo, len(p.toks)-1)].kind == sqlParam && p.op(lo+1, "=") { // for example @command1 = '…'
		lo += 2
	}
	text, known := p.literal(lo, hi)
	if known && p.nested(strings.ReplaceAll(text, "?", sqlHole), "execute", i, hi) && !strings.HasPrefix(text, sqlHole) {
		return
	}
	p.add("dynamic", "", i, hi)
}

// pureFunctions lists functions that only compute a value. A SELECT that calls another function is
// not proven read-only, because that function may change data.
var pureFunctions = scan.SetOf(`count sum avg min max coalesce nullif ifnull nvl isnull now date time datetime timestamp extract date_trunc
 to_char to_date to_timestamp to_number age year month day hour minute second date_part date_format strftime julianday unixepoch
 date_add date_sub datediff dateadd datepart timestampdiff from_unixtime unix_timestamp getdate sysdatetime curdate curtime
 lower upper length len char_length octet_length substr substring left right trim ltrim rtrim btrim lpad rpad replace translate concat
 concat_ws position strpos instr charindex locate reverse repeat split_part initcap ascii chr char format md5 sha1 sha2 sha256 encode hex unhex
 regexp_replace regexp_match regexp_matches regexp_split_to_table regexp_like regexp_substr regexp_extract like glob
 abs ceil ceiling floor round trunc sqrt power pow exp ln log log10 mod sign greatest least random rand pi degrees radians
 row_number rank dense_rank ntile lag lead first_value last_value percent_rank cume_dist percentile_cont percentile_disc median mode stddev variance corr
 array_agg string_agg group_concat listagg json_agg jsonb_agg json_object_agg jsonb_object_agg json_build_object jsonb_build_object json_extract
 json_extract_path_text json_value json_query json_each json_array_elements jsonb_array_elements jsonb_each to_json to_jsonb row_to_json unnest array_length
 cardinality generate_series cast convert try_cast if iff case decode any all some exists in values over partition bool_and bool_or every bit_and bit_or
 version current_database current_schema current_user session_user user database schema connection_id last_insert_id found_rows
 pg_size_pretty pg_total_relation_size pg_relation_size pg_database_size pg_table_size pg_indexes_size pg_get_viewdef pg_get_functiondef pg_get_indexdef
 pg_get_constraintdef pg_backend_pid pg_is_in_recovery pg_last_wal_receive_lsn pg_blocking_pids pg_postmaster_start_time has_table_privilege obj_description col_description
 format_type to_regclass quote_ident quote_literal inet_server_addr object_id object_name db_name db_id host_name suser_sname user_name serverproperty
 approx_count_distinct countif sumif any_value array_to_string string_to_array st_distance st_within st_intersects similarity word_similarity uuid gen_random_uuid newid uuid_generate_v4
 typeof total changes table_info quote zeroblob iif toyear tomonth todate touint32 uniq uniqexact grouparray argmax argmin quantile today yesterday lag_in_frame numeric decimal varchar int using as on and or not from where by with distinct select set limit then when else between`)

// callBodies marks the effects of a routine as immediate if this text both creates and calls it.
func (p *parser) callBodies() {
	for k := range p.out.Facts {
		f := &p.out.Facts[k]
		if !f.Deferred {
			continue
		}
		for _, name := range p.bodies {
			if strings.Count(strings.ToLower(p.text), name) > 1 && p.called(name) {
				f.Deferred = false
			}
		}
	}
}

// called reports whether the text calls the routine, with CALL, EXEC, PERFORM or as name(…) in a
// query. Its name in CREATE, DROP or GRANT does not count.
func (p *parser) called(name string) bool {
	for i := 1; i < len(p.toks); i++ {
		t := p.toks[i]
		if (t.kind == sqlWord || t.kind == sqlName) && unquote(p.raw(i)) == name &&
			!p.isAny(i-1, "function", "procedure", "proc", "exists", "trigger", "event") && !(p.op(i-1, ".") && p.isAny(i-3, "function", "procedure", "proc")) {
			return true
		}
	}
	return false
}

// firstOf returns the index of the first of the words in [lo,hi), or hi.
func (p *parser) firstOf(lo, hi int, words ...string) int {
	for i := lo; i < hi; i++ {
		if p.isAny(i, words...) {
			return i
		}
	}
	return hi
}
