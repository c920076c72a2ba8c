// shardwise-serve: the page and the JSON API on a port of this machine. Run by `shardwise serve`; a
// program of its own so that no other command waits for an HTTP library to be loaded.
//
// What a stranger may do here: read the page, the names in the catalog and the API's description,
// and ask questions of at most api_max_body bytes, which are answered in a process with a limit of
// time and memory. There is no handler that opens a file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>

#include "catalog/catalog_root.hpp"
#include "planner/commands/api.hpp"
#include "planner/commands/serve.hpp"
#include "planner/report/embedded_files.hpp"
#include "planner/report/html_report.hpp"
#include "planner/report/output.hpp"
#include "planner/sentence.hpp"
#include "planner/serve/answer_desk.hpp"
#include "planner/serve/bounded_server.hpp"

namespace shardwise {
namespace {

constexpr Bytes kept_answers{64 << 20};
constexpr const char* json = "application/json";

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

std::string without_port(const std::string& host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// Pages of other sites may make a browser ask us: under a name of theirs (DNS rebinding), or from a
// page of theirs. Neither is answered where we listen to this machine alone.
bool is_foreign(const httplib::Request& request) {
  if (!is_loopback(without_port(request.get_header_value("Host")))) return true;
  const std::string origin = request.get_header_value("Origin");
  const std::size_t name = origin.find("://");
  return !origin.empty() &&
         (name == std::string::npos || !is_loopback(without_port(origin.substr(name + 3))));
}

void set_problem(httplib::Response& response, int status, const std::string& what) {
  response.status = status;
  response.set_content(api_problem(status, "request", what).body, json);
}

void add_routes(BoundedServer& server, const Facts& facts, AnswerDesk& desk) {
  const auto fixed_text = [&](const char* path, std::string text, const char* type) {
    server.Get(
        path, [text = std::move(text), type](const httplib::Request&, httplib::Response& response) {
          response.set_content(text, type);
        });
  };
  fixed_text("/", served_page(), "text/html; charset=utf-8");
  fixed_text("/openapi.json", std::string(embedded_file("openapi.json")), json);
  for (const char* schema : {"fit", "simulate", "compare"}) {
    const std::string file = sentence(schema, ".schema.json");
    fixed_text(("/schemas/" + file).c_str(), std::string(embedded_file(file)), json);
  }
  fixed_text("/api/models.json", api_models(facts), json);
  fixed_text("/api/gpus.json", api_gpus(facts), json);
  server.Post("/api/([a-z]+(?:/document)?)", [&](const httplib::Request& request,
                                                 httplib::Response& response) {
    const std::string command = request.matches[1];
    const std::string question = api_question(command, request.body);
    auto answer = desk.known(question);
    if (!answer)
      server.aside([&] {
        answer = desk.answer(question, [&] { return api_answer(command, request.body, facts); });
      });
    response.status = answer->status;
    response.set_content(answer->body, json);
  });
}

void add_rules(BoundedServer& server, bool loopback_only) {
  server.set_payload_max_length(api_max_body);
  server.set_tcp_nodelay(true);
  const ServerLimits limits;  // as the replies tell them
  server.set_keep_alive_max_count(static_cast<std::size_t>(limits.requests));
  server.set_keep_alive_timeout(
      std::chrono::duration_cast<std::chrono::seconds>(limits.idle).count());
  server.set_default_headers(
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cache-Control", "no-store"}});
  server.set_pre_routing_handler(
      [loopback_only](const httplib::Request& request, httplib::Response& response) {
        if (!loopback_only || !is_foreign(request))
          return httplib::Server::HandlerResponse::Unhandled;
        set_problem(response, 403, "comes from a page of another site");
        return httplib::Server::HandlerResponse::Handled;
      });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    set_problem(response, response.status,
                response.status == 404   ? "there is nothing at this address"
                : response.status == 413 ? "is too large"
                                         : "cannot be understood");
  });
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response, auto&&...) {
    set_problem(response, 500, "failed here");
  });
}

int listen(const ServeOptions& options, const Facts& facts) {
  const Output output{std::cout, std::cerr};
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  AnswerLimits limits;
  limits.time = std::chrono::seconds(options.seconds);
  AnswerDesk desk(cores, limits, kept_answers);
  BoundedServer server{ServerLimits{}};
  add_rules(server, is_loopback(options.host));
  add_routes(server, facts, desk);
  const auto port = server.open(options.host, options.port);
  if (!port)
    return report_problems(
        {{ProblemKind::file, "--port",
          sentence(options.port, " of ", options.host,
                   " cannot be opened: it is in use, or no address of this machine")}},
        output);
  std::cout << "http://" << options.host << ":" << *port << "/" << std::endl;
  return server.listen_after_bind() ? 0 : 70;
}

int run(int argc, char** argv) {
  CLI::App app("Answers on a port of this machine.", "shardwise-serve");
  ServeOptions options;
  add_serve_flags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(ProblemKind::request);
  }
  const Output output{std::cout, std::cerr};
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  const auto facts = load_facts(*root, std::nullopt);
  if (!facts) return report_problems(facts.error(), output);
  std::signal(SIGPIPE, SIG_IGN);
  return listen(options, *facts);
}

}  // namespace
}  // namespace shardwise

int main(int argc, char** argv) {
  try {
    return shardwise::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "shardwise: this is our bug, please report it: " << e.what() << '\n';
    return 70;
  }
}
