package act

// Op is the kind of an effect on a file or on the machine.
type Op uint8

// The kinds of effects that programs in every language have: by a function, a method, a state in a
// configuration file, or a command of an editor.
const (
	DeleteFile Op = iota
	DeleteFileAnyway
	DeleteTree
	ReadFile
	MoveFile // On[1] is the destination, as for CopyFile, CopyTree and LinkFile
	CopyFile
	CopyTree
	LinkFile
	Unpack // extracts an archive into a folder
	ChangeMode
	ChangeOwner
	Fetch // requests a URL
	KillAll
	Overwrite
	AppendTo
)

// Effect is one effect that a program text has, independent of its language.
type Effect struct {
	Op       Op
	On       []Word // the files or URLs that it acts on, as written in the text
	Mode     string // for ChangeMode the mode, for ChangeOwner the owner, as chmod and chown take them
	Writes   string // the text that Overwrite and AppendTo write, if it is known
	From, To int    // range in the source
}

// programs maps each kind of effect to the command line with the same effect. The rules match
// command lines, and callers rely on the ids of the rules, so effects are judged in this form.
var programs = [...][]string{DeleteFile: {"rm"}, DeleteFileAnyway: {"rm", "-f"}, DeleteTree: {"rm", "-rf"}, ReadFile: {"cat"},
	MoveFile: {"mv"}, CopyFile: {"cp"}, CopyTree: {"cp", "-rT"}, Unpack: {"tar", "-xf", "-", "-C"}, LinkFile: {"ln", "-s"}, ChangeMode: {"chmod"}, ChangeOwner: {"chown"}, Fetch: {"curl"}, KillAll: {"kill", "-9", "-1"}, Overwrite: {">"}, AppendTo: {">>"}}

// Argv returns the command line with the same effect. Its words have the range of src.
func (f *Effect) Argv(src *Source) []Word {
	var out []Word
	for _, word := range programs[f.Op] {
		out = append(out, Word{Text: word, At: -1, Span: src.Span})
	}
	if f.Mode != "" {
		out = append(out, Word{Text: f.Mode, At: -1, Span: src.Span})
	}
	return append(out, f.On...)
}
