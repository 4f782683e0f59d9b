import ArgumentParser
import Foundation
import PluginABI
import PluginGatewayFleet
import PluginHost

/// `pluginhost-gateway fleet`.
struct FleetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Shows and changes what several hosts serve, through etcd.",
        discussion: """
            The commands only write to etcd; the hosts do the work, one after the other. Exit status: 0; 1 if etcd does not \
            answer or a rollout fails; 2 if it was rolled back; 64 for wrong arguments; 75 if another rollout is active.
            """,
        subcommands: [Status.self, Rollout.self, Pause.self, Resume.self, Back.self, Idempotent.self])

    /// How the command reaches etcd.
    struct Place: ParsableArguments {
        @Option(help: "A configuration file of “serve”; its setting “fleet” states where etcd and the store are.")
        var config: String?

        @Option(help: "URLs of etcd, separated by commas. (default: http://127.0.0.1:2379)")
        var endpoints: String?

        @Option(help: "The beginning of the keys in etcd. (default: pluginhost)")
        var prefix: String?

        /// Returns the setting `fleet` of the file, overridden by the options.
        func fleet() throws -> FleetConfiguration {
            var fleet = try config.flatMap { try ServeSettings(file: $0).fleet }
            if config != nil, fleet == nil, endpoints == nil {
                throw ValidationError("\(config ?? "") has no setting “fleet”. Add it, or give --endpoints.")
            }
            if fleet == nil || endpoints != nil {
                let list = (endpoints ?? "http://127.0.0.1:2379").split(separator: ",").map(String.init)
                if let problem = list.lazy.compactMap(EtcdConfiguration.problem(ofEndpoint:)).first {
                    throw ValidationError("--endpoints: \(problem)")
                }
                guard (1...16).contains(list.count) else { throw ValidationError("--endpoints: 1 to 16 URLs.") }
                if fleet == nil {
                    fleet = FleetConfiguration(
                        etcd: EtcdConfiguration(endpoints: list), name: "command", address: "", store: nil)
                } else {
                    fleet?.etcd.endpoints = list
                }
            }
            if let prefix {
                guard FleetConfiguration.isPrefix(prefix) else {
                    throw ValidationError(
                        "--prefix \(prefix) is not a prefix: letters, digits, “.”, “-”, “_”, and “/” between them.")
                }
                fleet?.prefix = prefix
            }
            return fleet!
        }

        /// Runs a body, and then closes the connections to etcd.
        func with<Result>(_ body: (FleetControl, FleetConfiguration) async throws -> Result) async throws -> Result {
            let fleet = try fleet()
            let etcd: Etcd
            do throws(EtcdError) { etcd = try Etcd(fleet.etcd) } catch { throw ValidationError(error.description) }
            do {
                let result = try await body(FleetControl(etcd, prefix: fleet.prefix), fleet)
                await etcd.close()
                return result
            } catch {
                await etcd.close()
                switch error {
                case let error as EtcdError: throw FleetCommand.failure("etcd: \(error)", 1)
                case let error as FleetError: throw FleetCommand.failure("\(error)", 75)
                default: throw error
                }
            }
        }
    }

    /// Prints an error, and returns the exit code to throw.
    static func failure(_ message: String, _ status: Int32) -> ExitCode {
        FileHandle.standardError.write(Data("Error: \(message)\n".utf8))
        return ExitCode(status)
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Keeps further hosts from beginning the rollout.")
        @OptionGroup var place: Place

        func run() async throws {
            let record = try await place.with { control, _ in try await control.pause() }
            print("The rollout of \(record.shown) is paused. A host that has begun will finish its step.")
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Continues a rollout that is paused or waits for a host.")
        @OptionGroup var place: Place

        @Option(help: "The name of a host that is away, and that the rollout does not wait for any longer.")
        var without: String?

        func run() async throws {
            let record = try await place.with { [without] control, _ in
                if let without { return try await control.resume(without: without) }
                return try await control.resume()
            }
            print("The rollout of \(record.shown) continues.")
        }
    }

    struct Back: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Rolls back the current or last rollout on all hosts.",
            discussion: "Returns when the hosts serve what they served before, unless --no-wait is given.")
        @OptionGroup var place: Place

        @Option(help: "The reason, which “fleet status” shows.")
        var reason = "rolled back by hand"

        @Flag(inversion: .prefixedNo, help: "Wait for the end.")
        var wait = true

        func run() async throws {
            try await place.with { control, _ in
                let record = try await control.rollBack(reason: reason)
                print("The rollout of \(record.shown) is being rolled back.")
                guard wait else { return }
                let end = try await Rollout.follow(record, control)
                guard end.state == .rolledBack else {
                    throw FleetCommand.failure("Not all hosts rolled back; see “fleet status”.", 1)
                }
                let left = try await control.hostsLeft(by: end)
                guard left.isEmpty else {
                    throw FleetCommand.failure(
                        "Hosts that came later do not roll back. \(left.joined(separator: "; ")). Put the file of the old "
                            + "version into the store, and roll it out.", 1)
                }
            }
        }
    }
}

extension RolloutRecord {
    /// The module with its version and the beginning of its digest.
    var shown: String { "\(module) \(release.version) (\(release.digest.prefix(12))…)" }
}
