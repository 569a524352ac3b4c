package ui

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// keyLifetime is how long the URL that starts a session is valid.
	keyLifetime = 10 * time.Minute
	// sessionLifetime is how long a session is valid.
	sessionLifetime = 12 * time.Hour
)

// Local is the gate of a server for the user who started it: a URL that is valid once starts the only session. All requests have the
// permissions of the cache's connection.
type Local struct {
	// Cookie is the name of the session's cookie.
	Cookie string
	// now is the clock.
	now func() time.Time

	lock    sync.Mutex
	key     string
	session string
	// ends is when the key or the session ends.
	ends time.Time
}

// NewLocal returns a gate for one user. Cookies are shared by all ports of a host, so that the name of the cookie has to differ by port.
func NewLocal(cookie string) *Local {
	now := time.Now
	return &Local{Cookie: cookie, now: now, key: rand.Text(), ends: now().Add(keyLifetime)}
}

// Path returns the path that starts the session. It contains the key, and works once.
func (l *Local) Path() string { return "/session/open?key=" + url.QueryEscape(l.key) }

// Visitor returns the user if the request has the session's cookie.
func (l *Local) Visitor(r *http.Request) (*Visitor, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	cookie, err := r.Cookie(l.Cookie)
	if err != nil || l.session == "" || !same(cookie.Value, l.session) || l.now().After(l.ends) {
		return nil, nil
	}
	return &Visitor{Rights: everything{}, Token: formToken(l.session)}, nil
}

// Enter starts the session of a request with the key.
func (l *Local) Enter(w http.ResponseWriter, r *http.Request, show func(int, Entrance)) {
	if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/session/open") {
		show(http.StatusUnauthorized, Entrance{Problem: "You have no session. Run 'kubectl addon ui' again, and open the URL that it prints."})
		return
	}
	session, ok := l.open(r.URL.Query().Get("key"))
	if !ok {
		show(http.StatusUnauthorized, Entrance{Problem: "This URL is no longer valid: it works once, within ten minutes. Run 'kubectl addon ui' again."})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: l.Cookie, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(sessionLifetime / time.Second)})
	// A redirect would be part of the navigation from another program, for which browsers do not send strict cookies; this page is not.
	w.Header().Set("Refresh", "0; url=/")
	show(http.StatusOK, Entrance{Next: "/"})
}

// open exchanges the key for a session.
func (l *Local) open(key string) (session string, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.key == "" || !same(key, l.key) || l.now().After(l.ends) {
		return "", false
	}
	l.key, l.session, l.ends = "", rand.Text(), l.now().Add(sessionLifetime)
	return l.session, true
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// formToken returns the value that the forms of a session have to contain. It follows from the session's cookie, which no other site knows.
func formToken(session string) string {
	code := hmac.New(sha256.New, []byte(session))
	code.Write([]byte("form"))
	return hex.EncodeToString(code.Sum(nil))
}
