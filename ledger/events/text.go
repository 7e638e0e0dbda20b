package events

import "github.com/go-json-experiment/json"

// Text is a personal member that is text. It is empty if the payload has a commitment in its
// place, because it was not opened or was erased.
type Text string

// UnmarshalJSON reads a text. A commitment becomes the empty text.
func (t *Text) UnmarshalJSON(value []byte) error {
	if len(value) > 0 && value[0] == '{' {
		*t = ""
		return nil
	}
	return json.Unmarshal(value, (*string)(t))
}
