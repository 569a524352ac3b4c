package ui

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// formToken returns the value that the forms of a session have to contain. It follows from the session's cookie, which no other site knows.
func formToken(session string) string {
	code := hmac.New(sha256.New, []byte(session))
	code.Write([]byte("form"))
	return hex.EncodeToString(code.Sum(nil))
}
