import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PluginABI
import PluginGatewayFleet
import PluginHost

extension FleetCommand {
    /// `pluginhost-gateway fleet status`.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the hosts, what they serve, what is desired, and the rollout.")
        @OptionGroup var place: Place

        @Flag(help: "Print JSON.")
        var json = false

        func run() async throws {
            let snapshot = try await place.with { control, _ in try await control.snapshot() }
            print(json ? snapshot.json.json : Self.text(snapshot))
        }

        private static func text(_ snapshot: FleetSnapshot) -> String {
            var rows = [["HOST", "ADDRESS", "STATE", "MODULE", "VERSION", "DIGEST"]]
            for host in snapshot.hosts.values.sorted(by: { $0.name < $1.name }) {
                let title = [host.name, host.address, host.state.rawValue]
                if host.modules.isEmpty { rows.append(title + ["–", "", ""]) }
                for (number, module) in host.modules.enumerated() {
                    rows.append(
                        (number == 0 ? title : ["", "", ""])
                            + [module.name, module.release.version, String(module.release.digest.prefix(12))])
                }
            }
            var text = snapshot.hosts.isEmpty ? "No host is known.\n" : table(rows)
            if !snapshot.desired.isEmpty {
                text +=
                    "\n"
                    + table(
                        [["DESIRED", "VERSION", "DIGEST", "FILE"]]
                            + snapshot.desired.sorted { $0.key < $1.key }.map { module, release in
                                [module, release.version, String(release.digest.prefix(12)), release.file ?? "–"]
                            })
            }
            if let rollout = snapshot.rollout {
                text += "\nRollout of \(rollout.shown): \(rollout.state.shown)"
                text += (rollout.reason.map { ": \($0)" } ?? "") + "\n"
                for (host, step) in rollout.steps.sorted(by: { $0.key < $1.key }) {
                    text += "  \(host): \(step.shown)\n"
                }
                for host in snapshot.missingHosts {
                    text += "  \(host): away; the rollout waits for it. (fleet resume --without \(host))\n"
                }
                if let holder = snapshot.lockHolder { text += "  \(holder) is taking its step.\n" }
            }
            let problems = snapshot.hosts.values.compactMap { host in host.problem.map { "\(host.name): \($0)" } }
            for problem in problems.sorted() + snapshot.problems { text += "\nProblem: \(problem)" }
            return text
        }

        private static func table(_ rows: [[String]]) -> String {
            let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
            return rows.map { row in
                let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
                return cells.joined(separator: "  ").replacing(#/ +$/#, with: "") + "\n"
            }.joined()
        }
    }

    /// `pluginhost-gateway fleet idempotent`.
    struct Idempotent: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the paths of the idempotent actions of a gateway, one per line.",
            discussion: """
                HAProxy reads the list as an ACL, and repeats a POST only if its path is in it. Print it again when the \
                modules have changed.
                """)

        @Argument(help: "The URL of a gateway, including its prefix, such as http://10.0.0.5:8080.")
        var url: String

        @Option(help: "A file with the token for the gateway, as “serve --tokens” reads it.")
        var tokens: String?

        func run() async throws {
            var request = HTTPClientRequest(url: url + "/openapi.json")
            if let tokens {
                guard let text = try? String(contentsOfFile: tokens, encoding: .utf8),
                    let line = text.split(whereSeparator: \.isNewline).first(where: { !$0.hasPrefix("#") }),
                    let token = line.split(separator: " ").last
                else { throw ValidationError("--tokens \(tokens) cannot be read, or has no token.") }
                request.headers.add(name: "Authorization", value: "Bearer \(token)")
            }
            let document: Value
            var configuration = HTTPClient.Configuration()
            configuration.connectionPool.retryConnectionEstablishment = false
            let client = HTTPClient(configuration: configuration)
            defer { client.shutdown { _ in } }
            do {
                let response = try await client.execute(request, timeout: .seconds(10))
                guard response.status == .ok else {
                    throw FleetCommand.failure("\(url)/openapi.json answers \(response.status.code).", 1)
                }
                document = try Value(json: String(buffer: try await response.body.collect(upTo: 64 << 20)))
            } catch let exit as ExitCode {
                throw exit
            } catch {
                throw FleetCommand.failure("\(url)/openapi.json cannot be read: \(error)", 1)
            }
            let prefix = document["servers"]?.list?.first?["url"]?.string ?? ""
            for (path, methods) in (document["paths"]?.map ?? [:]).sorted(by: { $0.key < $1.key }) {
                let isPlain = path.utf8.allSatisfy { (0x21..<0x7F).contains($0) && !"{}%".utf8.contains($0) }
                if isPlain, methods["post"]?["x-idempotent"] == true { print(prefix + path) }
            }
        }
    }
}
