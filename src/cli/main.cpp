#include "cli/app.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  crest::cli::explain_bus_errors();
  crest::cli::Application application;
  return application.run(argc, argv);
}
