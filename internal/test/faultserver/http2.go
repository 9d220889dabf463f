// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package faultserver

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// StreamFault is played for one request that came by HTTP/2, in place of its
// answer.
type StreamFault func(framer *http2.Framer, stream uint32) error

// RefuseStream answers RST_STREAM with REFUSED_STREAM.
func RefuseStream(framer *http2.Framer, stream uint32) error {
	return framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
}

// ProtocolErrorStream answers RST_STREAM with PROTOCOL_ERROR.
func ProtocolErrorStream(framer *http2.Framer, stream uint32) error {
	return framer.WriteRSTStream(stream, http2.ErrCodeProtocol)
}

// GoAway claims that no stream was ever processed, and closes the connection.
func GoAway(framer *http2.Framer, _ uint32) error {
	_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	return io.EOF
}

// GoAwayProtocolError ends the connection for the client's alleged fault.
func GoAwayProtocolError(framer *http2.Framer, stream uint32) error {
	_ = framer.WriteGoAway(stream, http2.ErrCodeProtocol, nil)
	return io.EOF
}

// Dead reads on and never writes again, as a connection through a VPN that is gone.
func Dead(framer *http2.Framer, _ uint32) error {
	for {
		if _, err := framer.ReadFrame(); err != nil {
			return err
		}
	}
}

// writeQueue takes frames at once: in memory nothing else holds them while the client
// writes too.
type writeQueue chan []byte

func (q writeQueue) Write(frame []byte) (int, error) {
	q <- bytes.Clone(frame)
	return len(frame), nil
}

// serveStreams speaks HTTP/2, as much of it as a Go client needs.
func (s *Server) serveStreams(conn net.Conn) {
	queue := make(writeQueue, 64)
	defer close(queue)
	s.running.Go(func() {
		for frame := range queue {
			_, _ = conn.Write(frame)
		}
	})
	framer := http2.NewFramer(queue, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	// Where these fail, so does ReadFrame.
	_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
	_ = framer.WriteSettings()
	requests := map[uint32]*http.Request{}
	bodies := map[uint32]*bytes.Buffer{}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		stream, ended := frame.Header().StreamID, false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			requests[stream], bodies[stream] = requestOf(frame), new(bytes.Buffer)
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			if body := bodies[stream]; body != nil {
				body.Write(frame.Data())
			}
			ended = frame.StreamEnded()
		}
		if r := requests[stream]; ended && r != nil {
			r.Body = io.NopCloser(bodies[stream])
			s.record(r, true)
			err = s.playStream(framer, stream, r)
			delete(requests, stream)
			delete(bodies, stream)
		}
		if err != nil {
			return
		}
	}
}

func requestOf(frame *http2.MetaHeadersFrame) *http.Request {
	r := &http.Request{
		Method: frame.PseudoValue("method"), Proto: "HTTP/2.0", ProtoMajor: 2,
		Host: frame.PseudoValue("authority"), Header: http.Header{},
	}
	r.URL, _ = url.ParseRequestURI(frame.PseudoValue("path"))
	for _, field := range frame.RegularFields() {
		r.Header.Add(field.Name, field.Value)
	}
	return r
}

// playStream plays the next fault, or the healthy answer when there is none left.
func (s *Server) playStream(framer *http2.Framer, stream uint32, r *http.Request) error {
	s.mu.Lock()
	var fault StreamFault
	if len(s.streamFaults) > 0 {
		fault, s.streamFaults = s.streamFaults[0], s.streamFaults[1:]
	}
	s.mu.Unlock()
	if fault != nil {
		return fault(framer, stream)
	}
	recorder := httptest.NewRecorder()
	s.healthy.ServeHTTP(recorder, r)
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(recorder.Code)}) // a buffer takes all
	_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: recorder.Header().Get("Content-Type")})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndHeaders: true})
	return framer.WriteData(stream, true, recorder.Body.Bytes())
}
