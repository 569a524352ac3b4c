package template

import (
	"errors"
	"fmt"
	"reflect"
)

// The limits of one template's execution. Packages come from third parties, and these limits protect the program that renders their
// templates: no template runs for much more than a second, fills the memory or exhausts the stack. The limits do not depend on the clock,
// so the same template always ends the same way.
const (
	// maxSteps is the budget of one execution, a few hundred times the cost of the largest packages. A step is about a microsecond: one
	// node of the template, one inspected value, bytesPerStep of text.
	maxSteps = 1_000_000
	// bytesPerStep is how much text a function reads or produces in one step.
	bytesPerStep = 32
	// itemsPerStep is how many list items a function copies in one step.
	itemsPerStep = 8
	// stepsPerCall is the cost of calling any function.
	stepsPerCall = 4
	// stepsPerLevel is the cost of a nested level of a called template, in addition to its nodes. Each level uses part of the stack, which
	// recursion must not exhaust.
	stepsPerLevel = 32
	// maxTextBytes limits the output of one template, and each text in it. It exceeds the API server's limit for one object (1.5 MiB in
	// etcd's default).
	maxTextBytes = 4 << 20
	// maxItems limits the length of lists and maps that functions create.
	maxItems = 100_000
	// maxLevels limits the nesting of lists and maps that functions process or that are printed.
	maxLevels = 100
	// maxRandomCharacters limits the length of random texts.
	maxRandomCharacters = 4096
	// maxPatternBytes limits the length of regular expressions.
	maxPatternBytes = 1000
)

var (
	errTooLong      = fmt.Errorf("it renders more than %d MiB: check for an endless loop", maxTextBytes>>20)
	errTooManySteps = fmt.Errorf("it takes more than %d steps: check for an endless loop or a very large value", maxSteps)
	errTooDeep      = fmt.Errorf("a value is nested more than %d levels deep", maxLevels)
	errHoldsItself  = errors.New("the map would contain itself")
)

// budget is the remaining budget of one execution.
type budget struct{ steps int }

// spend consumes steps, and returns errTooManySteps once none are left.
func (b *budget) spend(steps int) error {
	if steps > b.steps {
		b.steps = 0
		return errTooManySteps
	}
	b.steps -= steps
	return nil
}

// text spends the cost of creating a text of that many bytes.
func (b *budget) text(bytes int) error {
	if bytes > maxTextBytes {
		return errTooLong
	}
	return b.spend(bytes / bytesPerStep)
}

// items spends the cost of creating a list or a map of that many items.
func (b *budget) items(count int) error {
	if count > maxItems {
		return fmt.Errorf("it creates a list of %d items, more than %d", count, maxItems)
	}
	return b.spend(count / itemsPerStep)
}

// spendResult spends the cost of a function's result.
func (b *budget) spendResult(result reflect.Value) error {
	switch result.Kind() {
	case reflect.String:
		return b.text(result.Len())
	case reflect.Slice:
		return b.items(result.Len())
	default:
		return nil
	}
}

// weigh spends the cost of processing a value. A value that occurs several times counts several times, and deeper levels cost more, because
// they are indented when printed.
func (b *budget) weigh(v reflect.Value) error { return b.weighAt(v, 0, nowhere) }

// weighInside is weigh for a value that is about to be put into the map holder, which it must not contain.
func (b *budget) weighInside(v, holder reflect.Value) error { return b.weighAt(v, 0, holder.Pointer()) }

// nowhere is the address of no map, not even of a nil map.
const nowhere = ^uintptr(0)

// weighAt also terminates on cycles, by its depth limit; holder is the map that must not occur, or nowhere.
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
