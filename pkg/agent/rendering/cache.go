package rendering

import (
	"container/list"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// cache has the JSON of the renderings that were used last, up to a number of bytes. It is safe for concurrent use.
type cache struct {
	maxBytes int

	mutex sync.Mutex
	bytes int
	// order has the entries, the one that was used last first.
	order   list.List
	entries map[cacheKey]*list.Element
}

// cacheKey has the execution too: the digest alone, which anyone has who may read a status, gives access to nothing.
type cacheKey struct {
	Key
	digest string
}

type entry struct {
	key     cacheKey
	encoded []byte
}

func newCache(maxBytes int) *cache {
	return &cache{maxBytes: maxBytes, entries: map[cacheKey]*list.Element{}}
}

func (c *cache) get(key cacheKey) (encoded []byte, has bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := c.entries[key]
	if found == nil {
		return nil, false
	}
	c.order.MoveToFront(found)
	return found.Value.(*entry).encoded, true
}

func (c *cache) add(key cacheKey, encoded []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.entries[key] != nil || len(encoded) > c.maxBytes {
		return
	}
	for c.bytes+len(encoded) > c.maxBytes {
		c.drop(c.order.Back())
	}
	c.entries[key] = c.order.PushFront(&entry{key, encoded})
	c.bytes += len(encoded)
}

// forget drops the renderings of an Instance.
func (c *cache) forget(instance types.UID) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for key, element := range c.entries {
		if key.Instance == instance {
			c.drop(element)
		}
	}
}

func (c *cache) drop(element *list.Element) {
	dropped := c.order.Remove(element).(*entry)
	delete(c.entries, dropped.key)
	c.bytes -= len(dropped.encoded)
}
