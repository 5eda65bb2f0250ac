package front

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// propertyReads are the methods whose bodies name the properties to read.
var propertyReads = map[string]bool{"RetrieveProperties": true, "RetrievePropertiesEx": true, "CreateFilter": true}

// properties returns the properties that a call reads, each as "read TYPE.PROPERTY".
//
// Ours: the log of callers contains them, because some properties need a separate privilege, as methods do.
func (c Call) properties(body []byte) []string {
	if c.SOAP == "Fetch" {
		return aRead(c.Object.Type, text(body, "prop"))
	}
	if !propertyReads[c.SOAP] {
		return nil
	}
	var found []string
	kind := ""
	d := xml.NewDecoder(bytes.NewReader(body))
	for inSet := false; ; {
		t, err := d.Token()
		if err != nil {
			return found // the envelope's end
		}
		switch one := t.(type) {
		case xml.StartElement:
			inSet = inSet || one.Name.Local == "propSet"
			if inSet && one.Name.Local == "type" {
				kind = content(d, one)
			} else if inSet && one.Name.Local == "pathSet" {
				found = append(found, aRead(kind, content(d, one))...)
			}
		case xml.EndElement:
			inSet = inSet && one.Name.Local != "propSet"
		}
	}
}

// aRead returns a read of one property of a kind, with only the first part of its path, to which privileges apply.
func aRead(kind, path string) []string {
	if kind == "" || path == "" {
		return nil
	}
	return []string{"read " + kind + "." + path[:len(path)-len(strings.TrimLeft(path, letters))]}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// text returns the content of the first element with a name.
func text(body []byte, name string) string {
	d := xml.NewDecoder(bytes.NewReader(body))
	for {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		if one, ok := t.(xml.StartElement); ok && one.Name.Local == name {
			return content(d, one)
		}
	}
}

func content(d *xml.Decoder, start xml.StartElement) string {
	var value string
	if d.DecodeElement(&value, &start) != nil {
		return ""
	}
	return strings.TrimSpace(value[strings.LastIndex(value, ":")+1:])
}
