package template

import (
	"errors"
	"fmt"
	"reflect"
)

// The bounds of one template's execution. Packages are written by others, and what a template may do to the program that
// renders it is bounded here: no template runs for much more than a second, fills the memory or exhausts the stack. The
// clock decides nothing, so that the same template always ends the same way.
const (
	// maxSteps is what one execution may spend, a few hundred times what the largest packages do. A step is about a
	// microsecond: a node of the template as it is passed, a value looked at, bytesPerStep of text.
	maxSteps = 1_000_000
	// bytesPerStep is how much text a function reads or makes in one step.
	bytesPerStep = 32
	// itemsPerStep is how many items of a list a function copies in one step.
	itemsPerStep = 16
	// stepsPerCall is the cost of calling any function.
	stepsPerCall = 4
	// stepsPerLevel is the cost of a nested level of a template that is called, on top of that of its nodes. Each level
	// takes a part of the stack, which recursion must not exhaust.
	stepsPerLevel = 32
	// maxTextBytes bounds what one template renders, and each text in it. It is more than the API server takes as one
	// object (1.5 MiB in etcd's default).
	maxTextBytes = 4 << 20
	// maxItems bounds the lists and maps that functions make.
	maxItems = 100_000
	// maxLevels bounds how deeply lists and maps may be nested in what functions work through and in what is printed.
	maxLevels = 100
	// maxRandomCharacters bounds texts drawn at random.
	maxRandomCharacters = 4096
	// maxPatternBytes bounds regular expressions.
	maxPatternBytes = 1000
)

var (
	errTooLong      = fmt.Errorf("it renders more than %d MiB: does a loop never end?", maxTextBytes>>20)
	errTooManySteps = fmt.Errorf("it takes more than %d steps: does a loop never end, or is a value very large?", maxSteps)
	errTooDeep      = fmt.Errorf("a value is nested more than %d levels deep", maxLevels)
	errHoldsItself  = errors.New("the map would contain itself")
)

// budget is what is left to one execution.
type budget struct{ steps int }

// spend takes steps, and is errTooManySteps once there are none left.
func (b *budget) spend(steps int) error {
	if steps > b.steps {
		b.steps = 0
		return errTooManySteps
	}
	b.steps -= steps
	return nil
}

// text spends what it costs to make a text of that many bytes.
func (b *budget) text(bytes int) error {
	if bytes > maxTextBytes {
		return errTooLong
	}
	return b.spend(bytes / bytesPerStep)
}

// items spends what it costs to make a list or a map of that many items.
func (b *budget) items(count int) error {
	if count > maxItems {
		return fmt.Errorf("it makes a list of %d items, more than %d", count, maxItems)
	}
	return b.spend(count / itemsPerStep)
}

// made spends what a function's result costs.
func (b *budget) made(result reflect.Value) error {
	switch result.Kind() {
	case reflect.String:
		return b.text(result.Len())
	case reflect.Slice:
		return b.items(result.Len())
	default:
		return nil
	}
}

// weigh spends what it costs to work through a value. What stands in several places counts several times, and deeper levels
// cost more, for they are indented where they are printed.
func (b *budget) weigh(v reflect.Value) error { return b.weighAt(v, 0, nowhere) }

// weighInside is weigh for a value that is about to become part of a map, in which the map must not stand.
func (b *budget) weighInside(v, holder reflect.Value) error { return b.weighAt(v, 0, holder.Pointer()) }

// nowhere is the address of no map, not even of one that is nil.
const nowhere = ^uintptr(0)

// weighAt ends on cycles as well, by its depth; holder is the map that must not be found, or nowhere.
func (b *budget) weighAt(v reflect.Value, level int, holder uintptr) error {
	if level > maxLevels {
		return errTooDeep
	}
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	cost := 1 + level/2
	switch v.Kind() {
	case reflect.String:
		return b.spend(cost * (1 + v.Len()/bytesPerStep))
	case reflect.Map:
		if v.Pointer() == holder {
			return errHoldsItself
		}
		if err := b.weighMap(v, level+1, holder); err != nil {
			return err
		}
	case reflect.Slice, reflect.Array:
		if err := b.weighList(v, level+1, holder); err != nil {
			return err
		}
	}
	return b.spend(cost)
}

func (b *budget) weighMap(m reflect.Value, level int, holder uintptr) error {
	for entry := m.MapRange(); entry.Next(); {
		if err := b.weighAt(entry.Key(), level, holder); err != nil {
			return err
		}
		if err := b.weighAt(entry.Value(), level, holder); err != nil {
			return err
		}
	}
	return nil
}

func (b *budget) weighList(list reflect.Value, level int, holder uintptr) error {
	for i := range list.Len() {
		if err := b.weighAt(list.Index(i), level, holder); err != nil {
			return err
		}
	}
	return nil
}
