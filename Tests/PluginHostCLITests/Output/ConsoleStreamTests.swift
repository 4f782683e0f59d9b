import Foundation
import Glibc
import Testing

@testable import PluginHostCLI

@Suite(.timeLimit(.minutes(10))) struct ConsoleStreamTests {
    @Test func `Printing to a pipe that nobody reads does not block, and a line says how much was lost`() throws {
        // The program ignores this signal, too: the pipe is closed while there is still output for it.
        signal(SIGPIPE, SIG_IGN)
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let stream = ConsoleStream(ends[1])
        stream.beginBuffering { "lost \($0)" }
        let line = String(repeating: "x", count: 99) + "\n"
        let count = 2 * ConsoleStream.bufferLimit / 100
        for _ in 0..<count { stream.write(line) }
        #expect(!stream.flush(until: .now + .milliseconds(50)))
        // Then the output is read. The stream may have had room meanwhile, and then reports losses more than once.
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        var (whole, lost, more) = (0, 0, 0)
        while whole + lost < count {
            let got = read(ends[0], &chunk, chunk.count)
            try #require(got > 0)
            text += chunk[..<got]
            let end = text.lastIndex(of: UInt8(ascii: "\n")) ?? 0
            for line in String(decoding: text[..<end], as: UTF8.self).split(separator: "\n") {
                if line.hasPrefix("xxx") { whole += 1 }
                if line.hasPrefix("lost ") { lost += try #require(Int(line.dropFirst(5))) }
            }
            text.removeFirst(end)
            stream.write("more\n")
            more += 1
        }
        #expect(lost > 0 && whole + lost <= count + more)
        close(ends[0])
        #expect(stream.flush(until: .now + .seconds(60)))
        close(ends[1])
    }
}
