import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2Posix

/// Makes one unary call after another over a Unix socket, to a process that returns the number plus one.
///
///     Echo                  starts the other process, and makes calls on request; see measure.h
///     Echo --serve SOCKET   is that process
///
/// Both end when their input ends.
@main
struct Echo {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch (arguments.first, arguments.count) {
        case (nil, _): try await call()
        case ("--serve", 2): try await serve(arguments[1])
        default:
            FileHandle.standardError.write(Data("Usage: Echo\n".utf8))
            exit(64)
        }
    }

    static let method = MethodDescriptor(fullyQualifiedService: "bench.Plain", method: "one", type: .unary)

    private static func serve(_ socket: String) async throws {
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            exit(0)
        }
        let server = GRPCServer(
            transport: .http2NIOPosix(address: .unixDomainSocket(path: socket), transportSecurity: .plaintext),
            services: [Plain()])
        try await server.serve()
    }

    private static func call() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "plugin-echo-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let socket = folder.appending(path: "socket").path
        let server = Process()
        server.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        server.arguments = ["--serve", socket]
        let input = Pipe()  // Closed when this process ends, however it ends.
        server.standardInput = input
        try server.run()
        defer { try? input.fileHandleForWriting.close() }
        while !FileManager.default.fileExists(atPath: socket), server.isRunning { usleep(10_000) }
        try await withGRPCClient(
            transport: .http2NIOPosix(target: .unixDomainSocket(path: socket), transportSecurity: .plaintext)
        ) { client in
            answer("isolated\tgRPC over a Unix socket\t-\n")
            while let line = readLine(), let count = line.split(separator: " ").last.flatMap({ Int($0) }) {
                try await call(count, client)
                answer("")
            }
        }
    }

    private static func answer(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

    private static func call(_ count: Int, _ client: GRPCClient<HTTP2ClientTransport.Posix>) async throws {
        for number in 0..<count {
            let result = try await client.unary(
                request: ClientRequest(message: number), descriptor: method, serializer: Number(),
                deserializer: Number(), options: .defaults
            ) { try $0.message }
            precondition(result == number + 1)
        }
    }
}

private struct Plain: RegistrableRPCService {
    func registerMethods(with router: inout RPCRouter<some ServerTransport>) {
        router.registerHandler(forMethod: Echo.method, deserializer: Number(), serializer: Number()) { request, _ in
            let number = try await ServerRequest(stream: request).message
            return StreamingServerResponse(single: ServerResponse(message: number + 1))
        }
    }
}

/// A number in eight bytes, which is less work than protobuf.
private struct Number: MessageSerializer, MessageDeserializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ number: Int) -> Bytes {
        withUnsafeBytes(of: number.littleEndian) { bytes in Bytes(bytes) }
    }

    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Int {
        try bytes.withUnsafeBytes { bytes in
            guard bytes.count == 8 else { throw RPCError(code: .invalidArgument, message: "A number has 8 bytes.") }
            return Int(littleEndian: bytes.loadUnaligned(as: Int.self))
        }
    }
}
