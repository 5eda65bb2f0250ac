package front

import (
	"net/http"
	"testing"
)

// An endpoint of vcsim may set the status twice; net/http uses the first one.
func TestOfSeveralStatusesTheFirstCounts(t *testing.T) {
	for _, one := range []func(*recorder){
		func(r *recorder) { r.WriteHeader(http.StatusAccepted); r.WriteHeader(http.StatusNotFound) },
		func(r *recorder) { _, _ = r.Write([]byte("{}")); r.WriteHeader(http.StatusNotFound) },
	} {
		r := &recorder{header: http.Header{}, status: http.StatusOK}
		one(r)
		if r.status == http.StatusNotFound || r.result() != "ok" {
			t.Errorf("the status is %d", r.status)
		}
	}
}
