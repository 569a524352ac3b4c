// Package forged makes up statuses of Instances as an agent could forge them, for tests of the code on the hub that reads them.
package forged

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Words are the texts of statuses, by the name of the field. Fields that are missing have the texts under "".
type Words map[string][]string

// odd are texts that each field may have: no names, and more than a field should hold.
var odd = []string{"", "a/b", "..", "\x00<script>\u202e", strings.Repeat("x", 70), strings.Repeat("tandem-sensitive-", 200), "{{ .Params }}"}

// dates is the type of fields with a time.
var dates = reflect.TypeFor[metav1.Time]()

// states are the texts of fields with the state of a plan, or a part of it.
var states = []string{
	string(kudo.NeverRun), string(kudo.Pending), string(kudo.InProgress), string(kudo.InProgress), string(kudo.Complete), string(kudo.Error),
	string(kudo.FatalError),
}

// Seeds returns n encoded statuses, the seeds of a fuzz target: honest ones in which some values are replaced.
func Seeds(n int, words Words, honest ...kudo.InstanceStatus) []string {
	seeds := make([]string, n)
	for i := range seeds {
		f := &forger{Rand: rand.New(rand.NewPCG(uint64(i), 38)), words: words}
		status := honest[f.IntN(len(honest))].DeepCopy()
		f.change(reflect.ValueOf(status).Elem(), "")
		encoded, err := json.Marshal(status)
		if err != nil {
			panic(err) // it consists of strings, numbers, times, lists and maps
		}
		seeds[i] = string(encoded)
	}
	return seeds
}

// Status decodes a status; ok is false if it is none.
func Status(encoded string) (status kudo.InstanceStatus, ok bool) {
	return status, json.Unmarshal([]byte(encoded), &status) == nil
}

// forger fills statuses with random values.
type forger struct {
	*rand.Rand
	words Words
}

// change replaces some of the values of the field of that name. It removes items of lists and maps, and repeats those of lists.
func (f *forger) change(v reflect.Value, field string) {
	switch {
	case f.IntN(30) == 0 && field != "":
		f.fill(v, field)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		f.change(v.Elem(), field)
	case v.Kind() == reflect.Slice:
		f.changeList(v, field)
	case v.Kind() == reflect.Map:
		f.changeMap(v, field)
	case v.Kind() == reflect.Struct && v.Type() != dates:
		for i := range v.NumField() {
			f.change(v.Field(i), v.Type().Field(i).Name)
		}
	}
}

func (f *forger) changeList(v reflect.Value, field string) {
	for i := range v.Len() {
		f.change(v.Index(i), field)
	}
	switch odds := f.IntN(8); {
	case v.Len() > 0 && odds == 0:
		v.Set(reflect.Append(v, v.Index(f.IntN(v.Len()))))
	case v.Len() > 0 && odds == 1:
		v.Set(v.Slice(1, v.Len()))
	}
}

func (f *forger) changeMap(v reflect.Value, field string) {
	keys := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		changed, value := reflect.New(key.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
		changed.Set(key)
		value.Set(v.MapIndex(key))
		f.change(changed, field)
		f.change(value, field+"Value")
		if f.IntN(8) > 0 {
			v.SetMapIndex(key, reflect.Value{})
		}
		v.SetMapIndex(changed, value)
	}
}

// fill sets a value of the field of that name.
func (f *forger) fill(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.word(v.Type(), field))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int64, reflect.Int32:
		v.SetInt([]int64{0, 1, 7, -1, 1 << 30}[f.IntN(5)])
	case reflect.Pointer:
		v.SetZero()
		if f.IntN(8) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(3), 3))
		for i := range v.Len() {
			f.fill(v.Index(i), field)
		}
	case reflect.Map:
		f.fillMap(v, field)
	case reflect.Struct:
		f.fillStruct(v)
	}
}

func (f *forger) fillMap(v reflect.Value, field string) {
	v.Set(reflect.MakeMap(v.Type()))
	for range f.IntN(4) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, field)
		f.fill(value, field+"Value")
		v.SetMapIndex(key, value)
	}
}

func (f *forger) fillStruct(v reflect.Value) {
	if v.Type() == dates {
		date := time.Date([]int{1, 1970, 2026, 9999}[f.IntN(4)], 1, 1, 0, 0, 0, 0, time.UTC)
		v.Set(reflect.ValueOf(metav1.Time{Time: date}))
		return
	}
	for i := range v.NumField() {
		f.fill(v.Field(i), v.Type().Field(i).Name)
	}
}

// word returns a text for a field, one in ten an odd one.
func (f *forger) word(kind reflect.Type, field string) string {
	words := f.words[field]
	switch {
	case kind == reflect.TypeFor[kudo.ExecutionStatus]():
		words = states
	case len(words) == 0:
		words = f.words[""]
	}
	if len(words) == 0 || f.IntN(10) == 0 {
		words = odd
	}
	return words[f.IntN(len(words))]
}
