package config

import _ "time/tzdata" // the tests' zones, wherever they run
