package events

import "github.com/go-json-experiment/json"

// Text is a personal member that is text. It is empty where the payload holds the
// commitment in its place: in what was not opened, or was erased.
type Text string

// UnmarshalJSON reads a text, or passes a commitment over.
func (t *Text) UnmarshalJSON(value []byte) error {
	if len(value) > 0 && value[0] == '{' {
		*t = ""
		return nil
	}
	return json.Unmarshal(value, (*string)(t))
}
