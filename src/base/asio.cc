// SPDX-License-Identifier: Apache-2.0
// The code of Boost.Asio that is no template: BOOST_ASIO_SEPARATE_COMPILATION leaves it out of every other file.
#include <boost/asio/impl/src.hpp>
