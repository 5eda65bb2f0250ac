package front

import (
	"fmt"
	"log"
	"net/http"
)

// broken simulates a failure of the network or a proxy, and reports whether the fault is of this kind; carry executes
// the call.
func broken(w http.ResponseWriter, r *http.Request, rule *Fault, carry func() *recorder) (result string, is bool) {
	switch rule.Kind {
	case "drop":
		if rule.After {
			carry()
		}
		drop(w)
	case "half":
		half(w, carry())
	case "silent":
		silent(w, r)
	case "status":
		unavailable(w, rule)
		return "fault", true
	default:
		return "", false
	}
	return "dropped", true
}

// unavailable answers like the proxy of a vCenter whose services do not run: with a status and a line of text.
// VMware: Broadcom's knowledge base 316619 shows "503 Service Unavailable" and "no healthy upstream" as the answers
// to clients while services behind the proxy do not run.
func unavailable(w http.ResponseWriter, rule *Fault) {
	status := rule.Status
	if status == 0 {
		status = http.StatusServiceUnavailable
	}
	http.Error(w, "no healthy upstream", status)
}

// silent sends no answer; it waits until the client closes the connection.
func silent(w http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	drop(w)
}

// half sends the first half of an answer with the full Content-Length, and closes the connection.
func half(w http.ResponseWriter, rec *recorder) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
	conn, out, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			log.Printf("sending half an answer: %v", err)
		}
	}()
	body := rec.body.Bytes()
	_, err = fmt.Fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", rec.status,
		http.StatusText(rec.status), rec.header.Get("Content-Type"), len(body), body[:len(body)/2])
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		log.Printf("sending half an answer: %v", err)
	}
}
