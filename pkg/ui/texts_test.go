package ui

import (
	"io/fs"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// views has a value of the type that each template shows.
var views = map[string]any{
	"fleet": fleetView{}, "clusters": clustersView{}, "cluster": clusterView{}, "why": whyView{}, "instance": instanceView{}, "addon": addOnView{}, "search": searchView{}, "history": addOnHistoryView{}, "packages": packagesView{},
	"package": packageView{}, "proposal": proposal{}, "whatif": whatIfView{}, "refused": refusedView{}, "entrance": Entrance{}, "loading": "", "absent": "", "failure": "",
}

// fill sets every string in a value to a text, every list and map to one filled item, every pointer to a filled value, every number to 1 and
// every bool to yes.
func fill(v reflect.Value, text string, yes bool, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(yes)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, yes, depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text, yes, depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text, yes, depth-1)
		fill(value, text, yes, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text, yes, depth-1)
		}
	}
}

// fillPage returns the page of a template, with a text in the place of everything that a user could have written.
func fillPage(t *testing.T, template, text string, yes bool) string {
	t.Helper()
	view := reflect.New(reflect.TypeOf(views[template])).Elem()
	fill(view, text, yes, 16)
	f := frame{Title: text, Template: template, View: view.Interface(), Visitor: &Visitor{Name: text, Token: text, MayLeave: yes}, Version: text, Path: text, Query: text, Live: yes}
	content, err := server(t).render("layout", f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// markup returns the tags of a page with the names of their attributes, and the addresses that it leads to.
func markup(t *testing.T, page string) (tags, addresses []string) {
	t.Helper()
	tokens := html.NewTokenizer(strings.NewReader(page))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		token := tokens.Token()
		if kind == html.TextToken {
			continue
		}
		tag := kind.String() + " " + token.Data
		for _, attribute := range token.Attr {
			tag += " " + attribute.Key
			if slices.Contains([]string{"href", "src", "action", "formaction", "data", "poster"}, attribute.Key) {
				addresses = append(addresses, attribute.Val)
			}
		}
		tags = append(tags, tag)
	}
	return tags, addresses
}

// TestTextsOfUsersStayTexts sets every string that a page shows to markup, an address and control characters: names, messages, parameters, and
// what else may come from a user. The page has the same tags as with a plain text, leads nowhere else, and has no control character.
func TestTextsOfUsersStayTexts(t *testing.T) {
	const evil = "javascript:alert(1)//<script>alert(1)</script>\"'`><img src=x onerror=alert(2)>--></title></textarea><svg/onload=alert(3)>{{.}}\u202e\x1b[2J\r\n\x00"
	for template := range views {
		for _, yes := range []bool{true, false} {
			page := fillPage(t, template, evil, yes)
			tags, addresses := markup(t, page)
			plain, _ := markup(t, fillPage(t, template, "plain", yes))
			if diff := cmp.Diff(plain, tags); diff != "" {
				t.Errorf("page %s has other tags with the text: %s", template, diff)
			}
			for _, address := range addresses {
				if parsed, err := url.Parse(address); err != nil || parsed.Scheme != "" || parsed.Host != "" {
					t.Errorf("page %s leads to %q: %v", template, address, err)
				}
			}
			if found := regexp.MustCompile(`[^\P{C}\n\t]`).FindString(page); found != "" {
				t.Errorf("page %s contains %q", template, found)
			}
			if !strings.Contains(page, "alert(1)") {
				t.Errorf("page %s does not show the text", template)
			}
		}
	}
}

// TestEveryTemplateIsTested finds templates of pages that the table of views lacks.
func TestEveryTemplateIsTested(t *testing.T) {
	text, err := fs.ReadFile(files, "templates/layout.html")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`eq \.Template "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatal("no templates found")
	}
	for _, name := range found {
		if _, tested := views[name[1]]; !tested {
			t.Errorf("views lacks template %s", name[1])
		}
	}
}
