#include "cli/app.h"

int main(int argc, char** argv) {
  crest::cli::Application application;
  return application.run(argc, argv);
}
