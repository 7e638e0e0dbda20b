package checkpoint

import (
	"net/http"
	"time"
)

// SignForTest exports sign to the tests.
func (s *S3) SignForTest(r *http.Request, body []byte, now time.Time) { s.sign(r, body, now) }
