package front

import (
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const restSessionHeader = "vmware-api-session-id"

// sessions maps cookies and REST tokens to users; vcsim does not expose them.
type sessions struct {
	mu    sync.Mutex
	users map[string]string
}

func (s *sessions) user(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[key]
	return u, ok
}

func (s *sessions) put(key, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[key] = user
}

func (s *sessions) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, key)
}

// EndSessions removes all sessions.
func (f *Front) EndSessions() {
	f.sessions.mu.Lock()
	defer f.sessions.mu.Unlock()
	for key := range f.sessions.users {
		f.dataCentre.EndSession(key)
	}
	clear(f.sessions.users)
}

func cookie(r *http.Request) string {
	if c, err := r.Cookie(soap.SessionCookieName); err == nil {
		return strings.Trim(c.Value, `"`)
	}
	return ""
}

var userName = regexp.MustCompile(`<(?:\w+:)?userName[^>]*>([^<]*)<`)

// learn adds or removes the session that an answered call started or ended.
func (s *sessions) learn(r *http.Request, c Call, body []byte, answer http.Header) {
	for _, set := range (&http.Response{Header: answer}).Cookies() {
		if set.Name != soap.SessionCookieName {
			continue
		}
		user := c.User
		if m := userName.FindSubmatch(body); m != nil {
			user = string(m[1])
		}
		s.put(set.Value, user)
	}
	if c.SOAP == "Logout" {
		s.drop(cookie(r))
	}
}

// openMethods are the methods that need no session.
var openMethods = map[string]bool{
	"Login": true, "LoginByToken": true, "LoginExtensionByCertificate": true, "CloneSession": true,
	"RetrieveServiceContent":  true,
	"RetrieveInternalContent": true, "PbmRetrieveServiceContent": true,
}

// open reports whether a call needs no session.
// VMware: a vCenter returns NotAuthenticated for all calls except those to the service instance and the session
// manager; vcsim lets clients read every object.
func open(c Call, body []byte) bool {
	if openMethods[c.SOAP] || c.Object.Type == "ServiceInstance" || c.Object.Type == "SessionManager" {
		return true
	}
	if c.Object.Type != "PropertyCollector" {
		return false
	}
	return strings.Contains(string(body), `>SessionManager</`) || strings.Contains(string(body), `>ServiceInstance</`)
}

func notAuthenticated(ref types.ManagedObjectReference) string {
	fields := `<object type="` + escape(ref.Type) + `">` + escape(ref.Value) + `</object>` +
		`<privilegeId>System.View</privilegeId>`
	return faultEnvelope("NotAuthenticated", "The session is not authenticated.", fields)
}
