// Makes go.vectors.json with golang.org/x/mod/sumdb, an implementation that is not ours: notes, roots, proofs, tiles and their paths.
// With Go and that package at hand, from this folder: go run . > ../go.vectors.json
// The file was made with Go 1.19.8 and x/mod 0.7.0 of Debian 12.
package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type object map[string]interface{}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func entry(index int64) []byte { return []byte(fmt.Sprintf("entry %d", index)) }

func seedOf(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// keys gives the signer and the verifier key of a name, whose seed is the hash of the name.
func keys(name string) (note.Signer, string) {
	seed := seedOf(name)
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(name, public)
	must(err)
	id := strings.Split(vkey, "+")[1]
	secret := base64.StdEncoding.EncodeToString(append([]byte{1}, seed...))
	signer, err := note.NewSigner("PRIVATE+KEY+" + name + "+" + id + "+" + secret)
	must(err)
	return signer, vkey
}

func notes() (list []object) {
	texts := []string{
		"one line\n",
		"a text\n\nwith an empty line\n",
		"è subito sera — ognuno\n",
		"example.com/log\n5\n" + strings.Repeat("A", 43) + "=\n",
		"\n",
	}
	names := []string{"example.com/log", "PeterNeumann", "ключ.example/é"}
	for _, text := range texts {
		signers := []note.Signer{}
		vkeys := []string{}
		seeds := []string{}
		for _, name := range names {
			signer, vkey := keys(name)
			signers = append(signers, signer)
			vkeys = append(vkeys, vkey)
			seeds = append(seeds, hex.EncodeToString(seedOf(name)))
		}
		signed, err := note.Sign(&note.Note{Text: text}, signers...)
		must(err)
		list = append(list, object{"text": text, "seeds": seeds, "vkeys": vkeys, "note": string(signed)})
	}
	return list
}

type memory []tlog.Hash

func (m memory) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for at, index := range indexes {
		hashes[at] = m[index]
	}
	return hashes, nil
}

func texts(hashes []tlog.Hash) []string {
	list := make([]string, len(hashes))
	for at, hash := range hashes {
		list[at] = hash.String()
	}
	return list
}

func trees(m memory) (list []object) {
	sizes := []int64{1, 2, 3, 5, 8, 9, 63, 64, 65, 256, 257, 600}
	for _, size := range sizes {
		root, err := tlog.TreeHash(size, m)
		must(err)
		inclusions := []object{}
		for _, index := range []int64{0, 1, size / 2, size - 1} {
			if index < 0 || index >= size {
				continue
			}
			proof, err := tlog.ProveRecord(size, index, m)
			must(err)
			inclusions = append(inclusions, object{"index": index, "proof": texts(proof)})
		}
		consistencies := []object{}
		for _, old := range sizes {
			if old > size {
				continue
			}
			proof, err := tlog.ProveTree(size, old, m)
			must(err)
			consistencies = append(consistencies, object{"oldSize": old, "proof": texts(proof)})
		}
		list = append(list, object{"size": size, "root": root.String(), "inclusions": inclusions, "consistencies": consistencies})
	}
	return list
}

// tiles gives the tiles that growing from one size to another adds, each with the SHA-256 of its bytes. NewTiles lists a tile once for
// each width that it had on the way; the widest is the one of the new size.
func tiles(m memory) (list []object) {
	for _, sizes := range [][2]int64{{0, 1}, {0, 255}, {0, 256}, {0, 600}, {5, 9}, {255, 257}, {256, 512}, {511, 600}} {
		added := []object{}
		all := tlog.NewTiles(8, sizes[0], sizes[1])
		for at, tile := range all {
			if at+1 < len(all) && all[at+1].L == tile.L && all[at+1].N == tile.N {
				continue
			}
			data, err := tlog.ReadTileData(tile, m)
			must(err)
			sum := sha256.Sum256(data)
			added = append(added, object{"path": tile.Path(), "sha256": hex.EncodeToString(sum[:])})
		}
		list = append(list, object{"fromSize": sizes[0], "size": sizes[1], "tiles": added})
	}
	return list
}

func paths() (list []object) {
	for _, tile := range []tlog.Tile{
		{H: 8, L: 0, N: 0, W: 256}, {H: 8, L: 0, N: 0, W: 1}, {H: 8, L: 1, N: 999, W: 255}, {H: 8, L: 2, N: 1000, W: 256},
		{H: 8, L: 5, N: 1234067, W: 256}, {H: 8, L: 63, N: 1234067, W: 17}, {H: 8, L: 3, N: 9007199254740991, W: 256},
		{H: 8, L: -1, N: 1234067, W: 256}, {H: 8, L: -1, N: 3, W: 7},
	} {
		list = append(list, object{"level": tile.L, "index": tile.N, "width": tile.W, "path": tile.Path()})
	}
	return list
}

func main() {
	var m memory
	for index := int64(0); index < 600; index++ {
		hashes, err := tlog.StoredHashes(index, entry(index), m)
		must(err)
		m = append(m, hashes...)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	must(encoder.Encode(object{
		"version": "golang.org/x/mod v0.7.0",
		"entries": "\"entry <index>\", 600 of them",
		"notes":   notes(),
		"trees":   trees(m),
		"tiles":   tiles(m),
		"paths":   paths(),
	}))
}
