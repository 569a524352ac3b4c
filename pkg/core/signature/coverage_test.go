package signature_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// uncovered are the fields that no signature covers: where the Operator is, and how a file is divided, whose digest is covered.
var uncovered = regexp.MustCompile(`^\.operator\.(namespace|kind|uid|apiVersion|resourceVersion|fieldPath)$|^\.content\.0\.(parts\.0|size)$`)

// fill sets every field of a value to something, with one entry in each list and map.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint('7') // JSON of raw bytes
	}
}

// change calls try with each text, number and truth value of plain JSON changed, one at a time.
func change(value any, path string, set func(any), try func(path string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			change(inner, path+"."+name, func(other any) { value[name] = other }, try)
		}
		return
	case []any:
		for i, inner := range value {
			change(inner, fmt.Sprintf("%s.%d", path, i), func(other any) { value[i] = other }, try)
		}
		return
	case string:
		set("1" + value) // a duration stays one
	case float64:
		set(value + 1)
	case bool:
		set(!value)
	}
	try(path)
	set(value)
}

// TestContentDigestCoversEveryField changes every field of an OperatorVersion, also those that are added later.
func TestContentDigestCoversEveryField(t *testing.T) {
	version := &kudo.OperatorVersion{}
	fill(reflect.ValueOf(&version.Spec).Elem())
	encoded, err := json.Marshal(version.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		t.Fatal(err)
	}
	digest, fields := signature.ContentDigest(version), 0
	change(plain, "", nil, func(path string) {
		fields++
		altered := &kudo.OperatorVersion{}
		encoded, err := json.Marshal(plain)
		if err == nil {
			err = json.Unmarshal(encoded, &altered.Spec)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := signature.ContentDigest(altered); (got == digest) != uncovered.MatchString(path) {
			t.Errorf("a change of %s: the digest stays the same %t", path, got == digest)
		}
	})
	if fields < 70 {
		t.Errorf("only %d fields were changed", fields)
	}
}
