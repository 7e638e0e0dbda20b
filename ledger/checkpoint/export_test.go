package checkpoint

import (
	"net/http"
	"time"
)

// SignForTest is sign.
func (s *S3) SignForTest(r *http.Request, body []byte, now time.Time) { s.sign(r, body, now) }
