import Foundation
import PluginABI
import PluginFile
import Testing

@testable import PluginHost
@testable import TestSupport

/// What isolated modules can reach, with and without grants.
@Suite struct SandboxTests {
    /// A module that tries to reach what it should not. Each action replies with 0, or the error number.
    private static let spy = CModule(
        name: "Spy",
        actions: [
            ("passwords", "TRY(open(\"/etc/passwd\", O_RDONLY));"),
            ("write", "TRY(open(\"/tmp/pluginhost-spy\", O_WRONLY | O_CREAT, 0600));"),
            ("list", "TRY(open(\"/root\", O_RDONLY | O_DIRECTORY));"),
            ("udp", "TRY(socket(AF_INET, SOCK_DGRAM, 0));"),
            ("tcp", "TRY(socket(AF_INET, SOCK_STREAM, 0));"),
            ("unix", "TRY(socket(AF_UNIX, SOCK_STREAM, 0));"),
            ("fork", "pid_t child = fork(); if (child == 0) _exit(0); TRY(child);"),
            ("exec", "TRY(execl(\"/bin/true\", \"true\", NULL));"),
            ("signal", "TRY(kill(getppid(), 0));"),
            ("memory", "struct iovec here = {&here, 8}; TRY(process_vm_readv(getppid(), &here, 1, &here, 1, 0));"),
            ("trace", "TRY(ptrace(PTRACE_ATTACH, getppid(), 0, 0));"),
            (
                "host",
                """
                char path[64];
                snprintf(path, sizeof path, "/proc/%d/maps", getppid());
                TRY(open(path, O_RDONLY));
                """
            ),
            ("outlive", "TRY(prctl(PR_SET_PDEATHSIG, 0));"),
            ("hidden", "TRY(syscall(SYS_memfd_create, \"x\", 0));"),
            ("shared", "TRY(mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);"),
            ("limits", "struct rlimit none = {1, 1}; TRY(prlimit(getppid(), RLIMIT_CPU, &none, 0));"),
            ("nice", "TRY(setpriority(PRIO_PROCESS, getppid(), 19));"),
            ("owner", "TRY(fcntl(0, F_SETOWN, getppid()));"),
            ("rights", "TRY(chmod(\"/nonexistent\", 0600));"),
            ("pair", "int ends[2]; TRY(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));"),
            (
                "stack",
                "TRY(mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) == MAP_FAILED ? -1 : 0);"
            ),
            ("privileges", "TRY(mount(\"none\", \"/mnt\", \"tmpfs\", 0, 0));"),
            ("variable", "reply(call, getenv(\"PLUGINHOST_SECRET\") ? \"there\" : \"none\");"),
        ],
        code: """
            #include <sys/mman.h>
            #include <sys/mount.h>
            #include <sys/prctl.h>
            #include <sys/ptrace.h>
            #include <sys/resource.h>
            #include <sys/stat.h>
            #include <sys/socket.h>
            #include <sys/syscall.h>
            #include <sys/uio.h>
            #define TRY(attempt) reply_int(call->token, (attempt) >= 0 ? 0 : errno)
            """)

    private func host(_ modules: [CModule], _ rule: IsolationRule, all: Bool = false) throws -> TestHost {
        try TestHost(modules.map { try $0.build() }) { configuration in
            if all { configuration.isolation.modules = .all }
            configuration.isolation.rules = [rule]
        }
    }

    @Test(arguments: [
        "passwords", "write", "list", "udp", "tcp", "unix", "fork", "exec", "signal", "memory", "trace", "host",
        "outlive", "hidden", "privileges", "limits", "nice", "owner", "rights", "pair",
    ])
    func `A module without grants reaches nothing`(_ action: String) throws {
        let host = try host([Self.spy], IsolationRule("Spy"))
        try #require(host.host.modules.first?.process != nil)
        let result = try #require(try host.host.perform("Spy", action).int)
        #expect([EPERM, EACCES].contains(Int32(result)), "\(action): \(result)")
        #expect(host.answer("Spy") == "yes")
    }

    @Test func `Memory that is not counted cannot be had`() throws {
        guard !isSanitized else { return }  // A sanitizer has no limit of memory.
        let host = try host([Self.spy], IsolationRule("Spy"))
        #expect(try host.host.perform("Spy", "shared").int == Int(EPERM))
        #expect(try host.host.perform("Spy", "stack").int == Int(EPERM))
    }

    @Test func `What is granted is reached, and nothing else`() throws {
        let folder = try TemporaryFolder()
        let (readable, writable) = (try folder.folder("r"), try folder.folder("w"))
        _ = try folder.file("r/text", Data("x".utf8))
        let module = CModule(
            name: "Good",
            actions: [
                ("read", "TRY(open(\"\(readable)/text\", O_RDONLY));"),
                ("change", "TRY(open(\"\(readable)/text\", O_WRONLY));"),
                ("create", "TRY(open(\"\(writable)/new\", O_RDWR | O_CREAT, 0600));"),
                ("above", "TRY(open(\"\(folder.path)/other\", O_RDWR | O_CREAT, 0600));"),
                ("connect", "TRY(socket(AF_INET, SOCK_STREAM, 0));"),
                ("datagram", "TRY(socket(AF_INET, SOCK_DGRAM, 0));"),
                ("run", "pid_t child = fork(); if (child == 0) _exit(0); TRY(child);"),
                ("variable", "reply(call, getenv(\"HOME\") ? \"there\" : \"none\");"),
            ], code: Self.spy.code)
        var rule = IsolationRule("Good")
        rule.readablePaths = [readable]
        rule.writablePaths = [writable]
        rule.network = .ports(connect: [443], listen: [])
        rule.processLimit = 2
        rule.environment = ["HOME"]
        let host = try host([module], rule)
        for action in ["read", "create", "connect", "run"] {
            #expect(try host.host.perform("Good", action).int == 0, "\(action)")
        }
        for action in ["change", "above", "datagram"] {
            #expect(try host.host.perform("Good", action).int != 0, "\(action)")
        }
        #expect(FileManager.default.fileExists(atPath: "\(writable)/new"))
        #expect(try host.host.perform("Good", "variable").string == "there")
    }

    @Test func `Grants are those of a folder, and of the first rule that names the module`() throws {
        var (here, elsewhere) = (IsolationRule("Spy"), IsolationRule("Spy", folder: "/nowhere"))
        (here.environment, elsewhere.environment) = (["HOME"], ["PLUGINHOST_SECRET"])
        let all = IsolationRule("*")
        var isolation = Isolation()
        isolation.rules = [elsewhere, all, here]
        #expect(isolation.rule(for: "Spy", file: "/nowhere/else/libSpy.so") == elsewhere)
        #expect(isolation.rule(for: "Spy", file: "/nowhereelse/libSpy.so") == here)
        #expect(isolation.rule(for: "Other", file: "/x/libOther.so") == all)
        #expect(isolation.isolates("Other"))
        isolation.rules = [here]
        #expect(!isolation.isolates("Other"))
    }

    @Test func `A rule for a module that does not exist is reported, since the name may be mistyped`() throws {
        let host = try TestHost { configuration, folder in
            try folder.copy(try CModule().build(), as: "plugins/libGood.so")
            configuration.isolation.rules = [IsolationRule("Goood"), IsolationRule("Good")]
        }
        try host.host.start()
        #expect(host.answer() == "yes")
        #expect(host.messages.filter { $0.contains(", which is to run in a process") }.count == 1)
        #expect(host.messages.contains { $0.hasPrefix("The module “Goood”, which is to run") })
    }

    @Test func `Without a sandbox a module reaches what the host does, and limits hold`() throws {
        var rule = IsolationRule("Spy")
        (rule.sandbox, rule.descriptorLimit) = (.none, 32)
        let module = CModule(
            name: "Spy",
            actions: [
                ("passwords", "TRY(open(\"/etc/passwd\", O_RDONLY));"),
                (
                    "many",
                    "int last = 0; while (last >= 0 && last < 1000) last = dup(1); reply_int(call->token, errno);"
                ),
            ], code: Self.spy.code)
        let host = try host([module], rule)
        #expect(try host.host.perform("Spy", "passwords").int == 0)
        #expect(try host.host.perform("Spy", "many").int == Int(EMFILE))
    }

    @Test func `A module that eats memory gets no more, or ends alone`() throws {
        guard !isSanitized else { return }
        let module = CModule(
            name: "Bad",
            actions: [
                (
                    "eat",
                    """
                    int64_t megabytes = 0;
                    for (char *part; megabytes < 4096 && (part = malloc(1 << 20)); megabytes++) memset(part, 1, 1 << 20);
                    reply_int(call->token, megabytes);
                    """
                )
            ])
        var rule = IsolationRule("Bad")
        rule.memoryLimit = 128 << 20
        let host = try host([module, CModule()], rule, all: true)
        let count = try #require(try host.host.perform("Bad", "eat").int)
        #expect((16...128).contains(count))
        #expect(host.answer() == "yes")
    }

    @Test func `A module that uses its processor time up is ended`() throws {
        let module = CModule(name: "Bad", actions: [("spin", "for (volatile int x = 0;; x++) ;")])
        var rule = IsolationRule("Bad")
        rule.processorTime = .seconds(1)
        let host = try host([module, CModule()], rule, all: true)
        let error = try host.failure("Bad", "spin")
        #expect(error.code == .moduleCrashed)
        #expect(error.message.contains("signal \(SIGXCPU)") || isSanitized)
        #expect(host.answer() == "yes")
    }

    @Test func `Constructors are confined, too`() throws {
        let folder = try TemporaryFolder()
        let module = CModule(
            name: "Early",
            code: """
                static int error;
                __attribute__((constructor)) static void early(void) {
                    error = open("\(folder.path)/early", O_WRONLY | O_CREAT, 0600) < 0 ? errno : 0;
                }
                """, activate: "(void)error;")
        let named = try TestHost { configuration, folder in
            try folder.copy(try module.build(), as: "plugins/libEarly.so")
            configuration.isolation.rules = [IsolationRule("Early")]
        }
        try named.host.start()
        #expect(named.answer("Early") == "yes")
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/early"))
        // The same holds if the name of the file, here 0.so, says nothing about the name of the module.
        _ = try host([module], IsolationRule("*"))
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/early"))
    }

    @Test func `A path that does not exist is reported, and refused if the sandbox is required`() throws {
        var rule = IsolationRule("*")
        rule.readablePaths = ["/nonexistent/pictures"]
        let possible = try host([CModule()], rule)
        #expect(possible.answer() == "yes")
        #expect(possible.host.generations.first?.missingProtections.contains { $0.contains("/nonexistent") } == true)
        #expect(possible.messages.contains { $0.contains("lacks /nonexistent/pictures (No such file") })
        guard !isSanitized else { return }  // The limit of memory would be missing, too.
        rule.sandbox = .required
        let required = try TestHost { configuration, folder in
            try folder.copy(try CModule().build(), as: "plugins/libGood.so")
            configuration.isolation.rules = [rule]
        }
        try required.host.start()
        let error = try #require(required.status("libGood.so")?.error)
        #expect(error.code == .openFailed)
        #expect(error.message.contains("/nonexistent/pictures"))
    }

    // MARK: - Permissions

    private func waiting(_ more: String, _ rule: IsolationRule?) throws -> (TestHost, ModuleStatus?) {
        let host = try TestHost { configuration, folder in
            try folder.copy(try CModule(moreManifest: more).build(), as: "plugins/libGood.so")
            configuration.isolation.rules = rule.map { [$0] } ?? []
        }
        try host.host.start()
        return (host, host.status("libGood.so"))
    }

    @Test func `A permission is not granted by asking, and the module waits with the line to add`() throws {
        guard !modulesAreIsolated else { return }
        let asks = "\"permissions\": [{\"read\": \"/usr/share\", \"reason\": \"for words\"}, {\"connect\": 443}],"
        let (_, status) = try waiting(asks, IsolationRule("Good"))
        #expect(status?.state == .waiting)
        let error = try #require(status?.error)
        #expect(error.code == .permissionMissing)
        #expect(error.message.contains("to read /usr/share (for words); to connect to port 443"))
        // With the rule that the message contains, the module starts.
        let line = try #require(error.message.range(of: "{").map { String(error.message[$0.lowerBound...]) })
        let rule = try IsolationRule(Self.json(line))
        #expect(rule.readablePaths == ["/usr/share"])
        #expect(rule.network == .ports(connect: [443], listen: []))
        #expect(rule.folder != nil)
        let (granted, active) = try waiting(asks, IsolationRule("*"))
        #expect(active?.state == .waiting)
        _ = granted
        var anywhere = rule
        anywhere.folder = nil
        #expect(try waiting(asks, anywhere).1?.state == .active)
        #expect(try waiting(asks, nil).1?.state == .active)  // It runs in the process of the host.
    }

    @Test func `A module that must be isolated waits in a host that does not isolate it`() throws {
        guard !modulesAreIsolated else { return }
        let asks = "\"isolation\": \"required\","
        let (_, status) = try waiting(asks, nil)
        #expect(status?.error?.code == .permissionMissing)
        #expect(status?.error?.message.contains("--isolate Good") == true)
        #expect(try waiting(asks, IsolationRule("Good")).1?.state == .active)
    }

    // MARK: - Configuration

    private static func json(_ text: String) throws -> Value { try Value(jsonMessage: Array(text.utf8)) }

    @Test func `A rule is read as it is written`() throws {
        let rule = try IsolationRule(
            Self.json(
                """
                {"module": "Thumbnails", "folder": "/srv/plugins", "sandbox": "required",
                 "files": {"read": ["/srv/pictures"], "write": ["/srv/thumbnails"]},
                 "network": {"connect": [443], "listen": [8080]}, "memory": "256M", "cpuSeconds": 60,
                 "descriptors": 64, "processes": 2, "environment": ["API_KEY"],
                 "callTimeout": 3, "hangGrace": 0.5}
                """))
        #expect(rule.sandbox == .required)
        #expect(rule.memoryLimit == 256 << 20)
        #expect(rule.callTimeout == .seconds(3))
        #expect(rule.hangGrace == .milliseconds(500))
        #expect(try IsolationRule(Self.json(rule.json)) == rule)
    }

    @Test(arguments: [
        ("{}", "“module” is missing"), ("[]", "an object is expected"),
        ("{\"module\": \"A\", \"fils\": {}}", "Did you mean"),
        ("{\"module\": \"A\", \"folder\": \"plugins\"}", "absolute"),
        ("{\"module\": \"A\", \"files\": {\"read\": [\"pictures\"]}}", "absolute"),
        ("{\"module\": \"A\", \"files\": {\"read\": \"/srv\"}}", "list of texts"),
        ("{\"module\": \"A\", \"sandbox\": \"strict\"}", "“required”"),
        ("{\"module\": \"A\", \"network\": \"tcp\"}", "“none”"),
        ("{\"module\": \"A\", \"network\": {\"connect\": [0]}}", "1 to 65535"),
        ("{\"module\": \"A\", \"network\": {\"connect\": [70000]}}", "1 to 65535"),
        ("{\"module\": \"A\", \"memory\": \"256 MB\"}", "bytes"), ("{\"module\": \"A\", \"memory\": 100}", "16M"),
        ("{\"module\": \"A\", \"descriptors\": 3}", "16 to"), ("{\"module\": \"A\", \"callTimeout\": 0}", "positive"),
    ])
    func `A mistake in a rule is named`(_ text: String, _ expected: String) throws {
        let value = try Self.json(text)
        let error = try #require(#expect(throws: PluginError.self) { try IsolationRule(value) })
        #expect(error.code == .invalidConfiguration)
        #expect(error.message.contains(expected), "\(error.message)")
    }
}
