package events

import "github.com/go-json-experiment/json"

// Text is a personal member of type string. It is empty if the payload has a commitment instead,
// because the member was not decrypted or was erased.
type Text string

// UnmarshalJSON decodes a string. A commitment, which is an object, gives an empty text.
func (t *Text) UnmarshalJSON(value []byte) error {
	if len(value) > 0 && value[0] == '{' {
		*t = ""
		return nil
	}
	return json.Unmarshal(value, (*string)(t))
}
