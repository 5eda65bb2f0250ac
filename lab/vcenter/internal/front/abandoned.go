package front

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// abandoned is the prefix of the counter for waiting calls whose clients closed the connection.
const abandoned = "abandoned "

// wait forwards a call that waits for updates, and ends the wait when the client closes the connection.
// Ours: vcsim would wait indefinitely and compute every update.
func (f *Front) wait(r *http.Request, call Call, body []byte) *recorder {
	answered := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-answered:
		case <-r.Context().Done():
			f.cancelWait(r, call)
			<-answered
			f.Log.Count(abandoned + call.Method)
		}
	}()
	rec := f.forward(r, body)
	close(answered)
	<-watching
	return rec
}

func (f *Front) cancelWait(r *http.Request, call Call) {
	body := fmt.Sprintf(envelope,
		fmt.Sprintf(`<CancelWaitForUpdates xmlns="%s"><_this type="%s">%s</_this></CancelWaitForUpdates>`,
			vimNamespace, escape(call.Object.Type), escape(call.Object.Value)))
	request := r.Clone(detach())
	request.Body = io.NopCloser(strings.NewReader(body))
	f.next.ServeHTTP(&recorder{header: http.Header{}, status: http.StatusOK}, request)
}
