package release

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// indicators begin something else than plain text in YAML: lists, keys, references, tags, blocks, quotes, comments, directives.
	indicators = "-?:,[]{}#&*!|>'\"%@`"
	// specials end or escape a text in YAML, wherever they are. Parsers differ about the question mark in lists and maps in brackets.
	specials = "\"'`\\[]{},?"
)

// isPlain reports whether YAML reads a text as one scalar wherever a template inserts it, also beside other text. It may be a number, a boolean or
// null instead of a text: a template that does not quote it leaves that to the value.
func isPlain(s string) bool {
	switch {
	case s == "":
		return true
	case !utf8.ValidString(s), strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return false
	case strings.ContainsRune(indicators, rune(s[0])), strings.HasPrefix(s, "..."), s == "<<", s == "=":
		return false
	case strings.Trim(s, " ") != s: // it would indent what follows
		return false
	}
	return !strings.ContainsAny(s, specials) && !strings.Contains(s+" ", ": ") && !strings.Contains(s, " #")
}

// IsTemplate reports whether a text is, or completes, the beginning of an action, which a chart executes if it passes the text to tpl.
func IsTemplate(s string) bool {
	return strings.Contains(s, "{{") || strings.HasSuffix(s, "{")
}

// letters are those of tokens. No word of them is a number, a boolean or null.
const letters = "bcdfghjkmpqrstvwxz"

// tokens are plain texts of the same length in place of others, and the same for equal ones.
type tokens struct {
	byText map[string]string
	texts  map[string]string
	// all is true if plain texts get tokens, too.
	all bool
}

func newTokens() *tokens {
	return &tokens{byText: map[string]string{}, texts: map[string]string{}}
}

// of returns the token of a text that is not plain, and, unless all is set, a plain text itself. Tokens of different texts differ as far as their length allows.
func (t *tokens) of(text string) string {
	if text == "" || isPlain(text) && !t.all {
		return text
	}
	token, has := t.byText[text]
	if !has {
		token = t.next(len(text))
		t.byText[text], t.texts[token] = token, text
	}
	return token
}

// next returns a token of that length: the first one that no other text has.
func (t *tokens) next(length int) string {
	token := strings.Repeat(letters[:1], length)
	for number := len(t.byText); number < len(t.byText)+len(letters); number++ {
		token = numbered(number, length)
		if _, used := t.texts[token]; !used {
			break
		}
	}
	return token
}

// numbered returns a number in letters, as far as they fit.
func numbered(number, length int) string {
	token := []byte(strings.Repeat(letters[:1], length))
	for at := length - 1; at >= 0 && number > 0; at-- {
		token[at] = letters[number%len(letters)]
		number /= len(letters)
	}
	return string(token)
}

// restore returns a text with the original texts in place of tokens.
func (t *tokens) restore(text string) string {
	if original, is := t.texts[text]; is {
		return original
	}
	var pairs []string
	for _, token := range slices.SortedFunc(maps.Keys(t.texts), byLength) {
		if len(token) >= shortestInText {
			pairs = append(pairs, token, t.texts[token])
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// byLength orders longer texts before shorter ones.
func byLength(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// shortestInText is the length of the shortest token that is recognized inside of another text.
const shortestInText = 3

// in returns a decoded value with tokens in place of texts and keys that are not plain.
func (t *tokens) in(value any) any {
	switch v := value.(type) {
	case string:
		return t.of(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = t.in(item)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for key, item := range v {
			fields[t.of(key)] = t.in(item)
		}
		return fields
	}
	return value
}

// visit calls see for each text and key in a decoded value.
func visit(value any, see func(string)) {
	switch v := value.(type) {
	case string:
		see(v)
	case []any:
		for _, item := range v {
			visit(item, see)
		}
	case map[string]any:
		for key, item := range v {
			see(key)
			visit(item, see)
		}
	}
}

// place appends a step to the path of a value.
func place(path string, step any) string {
	if index, is := step.(int); is {
		return fmt.Sprintf("%s[%d]", path, index)
	}
	return strings.TrimPrefix(fmt.Sprintf("%s.%v", path, step), ".")
}
